/*
 * fence.c
 *		The AFTER row trigger of registered relations.
 *
 * It emits one message per row operation that really happened and touches no table, except that a DELETE records its tombstone version.
 * In a push it is also kept (fence_pushed.c). The worker matches each decoded row change with its fence.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "commands/trigger.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "port/pg_bswap.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/uuid.h"

#include "canonical.h"
#include "compat.h"
#include "errcodes.h"
#include "fence.h"
#include "message.h"

/* The ordinal has room for this many commands and fences of a transaction. */
#define MAX_COMMAND ((CommandId) 1 << 30)
#define MAX_SEQUENCE ((uint32) 1 << 31)

/*
 * Ordinal of a fence: sorted by it, the fences of one row follow the row's changes.
 *
 * The order in which AFTER triggers run does not: a trigger of the application that runs earlier may change the row again, and the fence
 * of that change comes first; and a BEFORE INSERT trigger may delete the row whose key it is about to insert with a later command id
 * than the INSERT's own. What does hold: updates and deletes of one row happen in the order of their command ids (a tuple changed
 * by a later command can't be changed by an earlier one). An insert comes before the first change of the tuple it made, and if there
 * is none yet, after all that happened so far.
 */
static uint64
fence_ordinal(TriggerData *td, HeapTuple old_tuple, HeapTuple new_tuple)
{
	uint32		sequence = fence_next_sequence();
	CommandId	command;
	bool		before = false;

	if (TRIGGER_FIRED_BY_UPDATE(td->tg_event))
		command = HeapTupleHeaderGetCmin(new_tuple->t_data);
	else if (TRIGGER_FIRED_BY_DELETE(td->tg_event))
		command = HeapTupleHeaderGetCmax(old_tuple->t_data);
	else
	{
		HeapTupleHeader header = new_tuple->t_data;

		before = !(header->t_infomask & HEAP_XMAX_INVALID) && !HEAP_XMAX_IS_LOCKED_ONLY(header->t_infomask) &&
			TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetUpdateXid(header));
		command = before ? HeapTupleHeaderGetCmax(header) : GetCurrentCommandId(false);
	}
	if (command >= MAX_COMMAND || sequence >= MAX_SEQUENCE)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("too many changes in one transaction")));
	return ((2 * (uint64) command + (before ? 0 : 1)) << 31) | sequence;
}

/* A key never changes: another BEFORE trigger may have set it after the key guard looked, or the row may move to another partition. */
static void
check_key(Fence *fence, TriggerData *td, const char *key)
{
	Datum		old_value;
	Datum		new_value;
	bool		isnull;

	if (TRIGGER_FIRED_BY_DELETE(td->tg_event))
	{
		/* the partition key is part of the key */
		if (!fence->partition || !HeapTupleHeaderIndicatesMovedPartitions(td->tg_trigtuple->t_data))
			return;
	}
	else
	{
		old_value = slot_getattr(td->tg_trigslot, fence->key, &isnull);
		new_value = slot_getattr(td->tg_newslot, fence->key, &isnull);
		if (datum_image_eq(old_value, new_value, fence->key_byval, fence->key_len) ||
			strcmp(OutputFunctionCall(&fence->key_output, old_value), key) == 0)
			return;
	}
	ereport(ERROR,
			(errcode(SYNCHRO_ERR_KEY_UPDATE_REFUSED),
			 errmsg("the key of registered table %s must not change", RelationGetRelationName(td->tg_relation)),
			 errhint("Delete the row and insert another one."),
			 errtable(td->tg_relation)));
}

/* Values of captured stored generated columns, in text that no setting changes. */
static void
append_generated(Fence *fence, TupleTableSlot *slot)
{
	SynOutputSettings saved;

	syn_pin_output(&saved);
	PG_TRY();
	{
		for (int i = 0; i < fence->ngenerated; i++)
		{
			FenceGenerated *column = &fence->generated[i];
			bool		isnull;
			Datum		value = slot_getattr(slot, column->attno, &isnull);
			const char *text = isnull ? "" : OutputFunctionCall(&column->output, value);
			uint16		attno = pg_hton16(column->root_attno);
			uint32		len = pg_hton32(strlen(text));

			appendBinaryStringInfo(&fence->message, (char *) &attno, 2);
			appendStringInfoChar(&fence->message, isnull ? 0 : 1);
			appendBinaryStringInfo(&fence->message, (char *) &len, 4);
			appendBinaryStringInfo(&fence->message, text, strlen(text));
		}
	}
	PG_FINALLY();
	{
		syn_unpin_output(&saved);
	}
	PG_END_TRY();
}

/* Completes the relation's message for one operation. */
static void
build_message(Fence *fence, char op, uint64 ordinal, TransactionId xid, const char *version, const char *key, TupleTableSlot *slot)
{
	StringInfo	m = &fence->message;
	char	   *at;
	uint64		ordinal_be = pg_hton64(ordinal);
	uint32		xid_be = pg_hton32(xid);
	uint32		key_len = strlen(key);
	uint32		key_len_be = pg_hton32(key_len);
	uint16		n_be = pg_hton16(slot ? fence->ngenerated : 0);

	m->len = fence->message_start;
	m->data[MESSAGE_HEADER] = op;
	at = m->data + fence->ordinal_at;
	memcpy(at, &ordinal_be, 8);
	syn_random_uuid((uint8 *) at + 8);
	memcpy(at + 8 + UUID_LEN, &xid_be, 4);
	memcpy(at + 8 + UUID_LEN + 4, version, SYN_VERSION_LEN);
	appendBinaryStringInfo(m, (char *) &key_len_be, 4);
	appendBinaryStringInfo(m, key, key_len);
	appendBinaryStringInfo(m, (char *) &n_be, 2);
	if (slot && fence->ngenerated > 0)
		append_generated(fence, slot);
}

/* The trigger's state of this query. */
static Fence *
current_fence(FunctionCallInfo fcinfo, TriggerData *td)
{
	if (fcinfo->flinfo->fn_extra == NULL)
		fcinfo->flinfo->fn_extra = fence_prepare(td->tg_relation, td->tg_trigger, fcinfo->flinfo->fn_mcxt);
	return fcinfo->flinfo->fn_extra;
}

PG_FUNCTION_INFO_V1(synchro_fence);

Datum
synchro_fence(PG_FUNCTION_ARGS)
{
	TriggerData *td = (TriggerData *) fcinfo->context;
	Fence	   *fence;
	TupleTableSlot *slot;		/* the row: new, or deleted */
	HeapTuple	new_tuple = NULL;
	char		version[SYN_VERSION_LEN + 1] = "";
	TransactionId xmin = InvalidTransactionId;
	uint64		ordinal;
	Datum		key_value;
	char	   *key;
	bool		isnull;
	char		op;

	if (!CALLED_AS_TRIGGER(fcinfo) || !TRIGGER_FIRED_AFTER(td->tg_event) || !TRIGGER_FIRED_FOR_ROW(td->tg_event))
		elog(ERROR, "not called by an AFTER row trigger");
	if (fence_sealed())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("this transaction has completed its registration and must not write registered tables any more"),
				 errhint("Commit, then write.")));
	fence = current_fence(fcinfo, td);

	slot = td->tg_trigslot;
	op = 'D';
	if (TRIGGER_FIRED_BY_INSERT(td->tg_event))
	{
		op = 'I';
		new_tuple = td->tg_trigtuple;
		if (HeapTupleHeaderXminFrozen(new_tuple->t_data))
			ereport(ERROR,
					(errcode(SYNCHRO_ERR_COPY_FREEZE_REFUSED),
					 errmsg("COPY FREEZE into a registered table is not supported"),
					 errhint("Use COPY without FREEZE."),
					 errtable(td->tg_relation)));
	}
	else if (TRIGGER_FIRED_BY_UPDATE(td->tg_event))
	{
		op = 'U';
		new_tuple = td->tg_newtuple;
		slot = td->tg_newslot;
	}
	key_value = slot_getattr(slot, fence->key, &isnull);
	if (isnull)
		elog(ERROR, "key of a registered table is null");
	key = OutputFunctionCall(&fence->key_output, key_value);
	if (op == 'I')
		fence_check_key(td->tg_relation, fence->key, key);
	else
		check_key(fence, td, key);
	if (new_tuple)
	{
		fence_check_row(fence, td->tg_relation, slot, op == 'U' ? td->tg_trigslot : NULL, new_tuple);
		xmin = HeapTupleHeaderGetRawXmin(new_tuple->t_data);
	}

	syn_random_version(version);
	ordinal = fence_ordinal(td, td->tg_trigtuple, new_tuple);

	/*
	 * The worker must know the subtransaction: in a streamed transaction, row changes carry theirs, but messages that of the top one.
	 */
	build_message(fence, op, ordinal, new_tuple ? xmin : GetCurrentTransactionId(), version, key, new_tuple ? slot : NULL);
	message_emit(MESSAGE_FENCE, &fence->message, true);
	if (op == 'D' && fence->kind == 's')
		fence_write_tombstone(fence->rel_no, key, version);
	if (fence_push_active())
	{
		PushedFence pushed = {.rel_no = fence->rel_no, .key = key, .xmin = xmin, .op = op, .ordinal = ordinal};

		memcpy(pushed.version, version, sizeof(version));
		fence_pushed_add(&pushed);
	}
	return PointerGetDatum(NULL);
}
