/*
 * message.c
 *		Authenticated messages in the WAL: anyone may emit a logical message, only this code knows the key.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/namespace.h"
#include "commands/trigger.h"
#include "fmgr.h"
#include "libpq/pqformat.h"
#include "miscadmin.h"
#include "port/pg_bswap.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/pg_lsn.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "errcodes.h"
#include "message.h"
#include "random.h"
#include "siphash.h"

static uint8 mac_key[SIPHASH_KEY_LEN];
static bool mac_key_valid = false;
static Oid	mac_key_table = InvalidOid;

/* The table of keys changed (see synchro_secret_key_changed), or was dropped. */
static void
forget_mac_key(Datum arg, Oid relid)
{
	if (relid == InvalidOid || relid == mac_key_table)
	{
		explicit_bzero(mac_key, sizeof(mac_key));
		mac_key_valid = false;
	}
}

/*
 * Reads the key once per backend: directly, because the writer has no right on the table and needs none, and with the latest
 * snapshot, because the one of an old transaction may not have the key in force.
 */
static void
load_mac_key(void)
{
	static bool registered = false;
	Relation	rel;
	TableScanDesc scan;
	HeapTuple	tuple;
	Snapshot	snapshot;
	AttrNumber	purpose;
	AttrNumber	state;
	AttrNumber	secret;

	if (!registered)
	{
		CacheRegisterRelcacheCallback(forget_mac_key, (Datum) 0);
		registered = true;
	}
	rel = table_open(get_relname_relid("secret_key", get_namespace_oid("synchro", false)), AccessShareLock);
	mac_key_table = RelationGetRelid(rel);
	purpose = get_attnum(mac_key_table, "purpose");
	state = get_attnum(mac_key_table, "state");
	secret = get_attnum(mac_key_table, "secret");
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	scan = table_beginscan(rel, snapshot, 0, NULL);
	while (!mac_key_valid && (tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		bool		isnull;
		bytea	   *value;

		if (strcmp(TextDatumGetCString(heap_getattr(tuple, purpose, RelationGetDescr(rel), &isnull)), "fence") != 0 ||
			strcmp(TextDatumGetCString(heap_getattr(tuple, state, RelationGetDescr(rel), &isnull)), "active") != 0)
			continue;
		value = DatumGetByteaPP(heap_getattr(tuple, secret, RelationGetDescr(rel), &isnull));
		if (VARSIZE_ANY_EXHDR(value) != SIPHASH_KEY_LEN)
			continue;
		memcpy(mac_key, VARDATA_ANY(value), SIPHASH_KEY_LEN);
		mac_key_valid = true;
	}
	table_endscan(scan);
	UnregisterSnapshot(snapshot);
	table_close(rel, AccessShareLock);
	if (!mac_key_valid)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("there is no active key for messages to the capture worker"),
				 errhint("Restore table synchro.secret_key.")));
}

void
message_begin(StringInfo message)
{
	initStringInfo(message);
	appendStringInfoSpaces(message, MESSAGE_HEADER);
}

XLogRecPtr
message_emit(char type, StringInfo message, bool transactional)
{
	uint8	   *content = (uint8 *) message->data;
	uint32		top_xid = pg_hton32(transactional ? GetTopTransactionId() : InvalidTransactionId);
	uint8		mac[SIPHASH_LEN];

	Assert(message->len >= MESSAGE_HEADER);
	if (!mac_key_valid)
		load_mac_key();

	/* The MAC's input, top xid, type and body, is made in place: it ends where the body ends, over the room of the header. */
	memcpy(content + MESSAGE_HEADER - 5, &top_xid, 4);
	content[MESSAGE_HEADER - 1] = type;
	siphash128(mac_key, content + MESSAGE_HEADER - 5, message->len - MESSAGE_HEADER + 5, mac);
	content[0] = type;
	memcpy(content + 1, mac, SIPHASH_LEN);
	return syn_log_message(message->data, message->len, transactional);
}

PG_FUNCTION_INFO_V1(synchro_emit_activation);
PG_FUNCTION_INFO_V1(synchro_emit_switch);
PG_FUNCTION_INFO_V1(synchro_emit_push);
PG_FUNCTION_INFO_V1(synchro_emit_marker);
PG_FUNCTION_INFO_V1(synchro_emit_compaction);
PG_FUNCTION_INFO_V1(synchro_secret_key_changed);

/* A generation, and the transaction that tells of it. */
static void
emit_generation(char type, int64 generation)
{
	StringInfoData message;

	message_begin(&message);
	pq_sendint64(&message, generation);
	pq_sendint64(&message, U64FromFullTransactionId(GetTopFullTransactionId()));
	message_emit(type, &message, true);
}

/* _emit_activation(generation bigint) void */
Datum
synchro_emit_activation(PG_FUNCTION_ARGS)
{
	emit_generation(MESSAGE_ACTIVATION, PG_GETARG_INT64(0));
	PG_RETURN_VOID();
}

/* _emit_switch(generation bigint) void */
Datum
synchro_emit_switch(PG_FUNCTION_ARGS)
{
	emit_generation(MESSAGE_SWITCH, PG_GETARG_INT64(0));
	PG_RETURN_VOID();
}

/* _emit_push(client_no bigint, write_epoch bigint) void */
Datum
synchro_emit_push(PG_FUNCTION_ARGS)
{
	StringInfoData message;

	message_begin(&message);
	pq_sendint64(&message, PG_GETARG_INT64(0));
	pq_sendint64(&message, PG_GETARG_INT64(1));
	message_emit(MESSAGE_PUSH, &message, true);
	PG_RETURN_VOID();
}

/*
 * _emit_marker() pg_lsn: flushed, so that the walsender sends it now. Returns the start of the record: every transaction that
 * committed before has its commit record below, and a worker that has seen the marker is at or above, whichever end it notes.
 */
Datum
synchro_emit_marker(PG_FUNCTION_ARGS)
{
	StringInfoData message;
	uint64		nonce;
	XLogRecPtr	start;
	XLogRecPtr	end;

	PreventCommandDuringRecovery("synchro._emit_marker()");
	syn_random(&nonce, sizeof(nonce));
	message_begin(&message);
	pq_sendint64(&message, nonce);
	end = message_emit(MESSAGE_MARKER, &message, false);
	start = ProcLastRecPtr;
	XLogFlush(end);
	PG_RETURN_LSN(start);
}

/*
 * _emit_compaction(stale_before timestamptz, batch_size int) bigint: asks the worker for a compaction, outside of the transaction and
 * flushed like a marker. Returns the number that its answer in synchro.compaction bears.
 */
Datum
synchro_emit_compaction(PG_FUNCTION_ARGS)
{
	StringInfoData message;
	int64		request;

	PreventCommandDuringRecovery("synchro._emit_compaction()");
	syn_random(&request, sizeof(request));
	message_begin(&message);
	pq_sendint64(&message, request);
	pq_sendint64(&message, PG_GETARG_TIMESTAMPTZ(0));
	pq_sendint32(&message, PG_GETARG_INT32(1));
	XLogFlush(message_emit(MESSAGE_COMPACTION, &message, false));
	PG_RETURN_INT64(request);
}

/* Trigger of secret_key: every backend reads the keys again. */
Datum
synchro_secret_key_changed(PG_FUNCTION_ARGS)
{
	TriggerData *td = (TriggerData *) fcinfo->context;

	if (!CALLED_AS_TRIGGER(fcinfo))
		elog(ERROR, "not called by a trigger");
	CacheInvalidateRelcache(td->tg_relation);
	return PointerGetDatum(NULL);
}
