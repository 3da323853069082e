/*
 * fence_check.c
 *		What the capture stream could not carry is refused at the writer, so that one bad row never blocks everyone.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/htup_details.h"
#include "executor/tuptable.h"
#include "utils/datum.h"

#include "canonical.h"
#include "compat.h"
#include "errcodes.h"
#include "fence.h"
#include "guc.h"

/* No compression method of PostgreSQL makes data smaller than this part of it. */
#define BEST_COMPRESSION 256

/* Octets of the row's values, uncompressed; nothing is fetched for it. */
static uint64
row_bytes(TupleTableSlot *slot)
{
	TupleDesc	desc = slot->tts_tupleDescriptor;
	uint64		total = 0;

	slot_getallattrs(slot);
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (slot->tts_isnull[i] || att->attisdropped)
			continue;
		total += att->attlen == -1 ? toast_raw_datum_size(slot->tts_values[i]) : att->attlen > 0 ? att->attlen : 0;
	}
	return total;
}

static void
check_size(Relation rel, TupleTableSlot *slot, HeapTuple tuple)
{
	if (synchro_max_row_bytes <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIG_FILE_ERROR),
				 errmsg("synchro.max_row_bytes is not positive"),
				 errhint("Set it to a positive number of bytes and reload.")));
	if (!HeapTupleHasExternal(tuple) && tuple->t_len < synchro_max_row_bytes / BEST_COMPRESSION)
		return;
	if (row_bytes(slot) > synchro_max_row_bytes)
		ereport(ERROR,
				(errcode(SYNCHRO_ERR_ROW_TOO_LARGE),
				 errmsg("the row is too large for registered table %s", RelationGetRelationName(rel)),
				 errdetail("A row may have %d octets.", synchro_max_row_bytes),
				 errhint("Raise synchro.max_row_bytes, or keep large values outside of registered tables."),
				 errtable(rel)));
}

/* The indexes of the extension have the key beside other columns, and its text may be longer than its value: both leave less room than the table's own. */
void
fence_check_key(Relation rel, AttrNumber attno, const char *key)
{
	if (strlen(key) > SYN_KEY_MAX)
		ereport(ERROR,
				(errcode(SYNCHRO_ERR_ROW_TOO_LARGE),
				 errmsg("the key is too long for registered table %s", RelationGetRelationName(rel)),
				 errdetail("The text of a key may have %d octets.", SYN_KEY_MAX),
				 errtablecol(rel, attno)));
}

/* old_slot is NULL for an insert. A value that an update left alone was checked when it was written. */
void
fence_check_row(const Fence *fence, Relation rel, TupleTableSlot *new_slot, TupleTableSlot *old_slot, HeapTuple new_tuple)
{
	check_size(rel, new_slot, new_tuple);
	if (fence->ncolumns == 0)
		return;
	slot_getsomeattrs(new_slot, fence->last_column);
	if (old_slot)
		slot_getsomeattrs(old_slot, fence->last_column);
	for (int i = 0; i < fence->ncolumns; i++)
	{
		const FenceColumn *column = &fence->columns[i];
		int			n = column->attno - 1;

		if (new_slot->tts_isnull[n])
		{
			if (column->required)
				ereport(ERROR,
						(errcode(ERRCODE_NOT_NULL_VIOLATION),
						 errmsg("null value in column %s of registered table %s, which clients take for not null",
								NameStr(TupleDescAttr(RelationGetDescr(rel), n)->attname), RelationGetRelationName(rel)),
						 errhint("Register the table again: that tells clients that the column may be null."),
						 errtablecol(rel, column->attno)));
			continue;
		}
		if (old_slot && !column->byval && !old_slot->tts_isnull[n] &&
			datumIsEqual(old_slot->tts_values[n], new_slot->tts_values[n], false, column->len))
			continue;
		if (!column->codec || !syn_codec_check(column->codec, new_slot->tts_values[n]))
			ereport(ERROR,
					(errcode(SYNCHRO_ERR_UNREPRESENTABLE_WRITE),
					 errmsg("the value of column %s of registered table %s has no portable form",
							NameStr(TupleDescAttr(RelationGetDescr(rel), n)->attname), RelationGetRelationName(rel)),
					 column->text_helps ? errhint("To sync such values, register the column in p_text_columns.") : 0,
					 errtablecol(rel, column->attno)));
	}
}
