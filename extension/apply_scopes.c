/*
 * apply_scopes.c
 *		Records in a projection which scopes hold rows, for the worker.
 *
 * A row that this very transaction inserted has a placeholder, and nobody else can see it: the scopes are written over it on its page. A
 * second version of every new row would cost as much as the row itself, and half-filled pages to have room for it.
 */
#include "postgres.h"

#include "access/generic_xlog.h"
#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"

#include "apply.h"
#include "bulk.h"
#include "compat.h"

typedef struct Row
{
	ItemPointerData tid;
	int			n;
	const char *scopes;			/* n times 8 octets, big-endian */
} Row;

static void
read_row(Octets *in, Row *row)
{
	octets_tid(in, &row->tid);
	row->n = octets_u16(in);
	row->scopes = octets_take(in, (size_t) row->n * sizeof(int64));
}

static void
copy_scopes(const Row *row, char *to)
{
	for (int i = 0; i < row->n; i++)
	{
		uint64		scope;

		memcpy(&scope, row->scopes + i * sizeof(scope), sizeof(scope));
		scope = pg_ntoh64(scope);
		memcpy(to + i * sizeof(scope), &scope, sizeof(scope));
	}
}

/* Writes the scopes over the row's placeholder. False: there is none of that length, or the row is not one of this transaction. */
static bool
overwrite(Bulk *bulk, int column, Page page, const Row *row)
{
	OffsetNumber offset = ItemPointerGetOffsetNumber(&row->tid);
	HeapTupleData tuple;
	struct varlena *value;
	bool		isnull;
	ItemId		id;

	if (row->n == 0 || offset > PageGetMaxOffsetNumber(page) || !ItemIdIsNormal(id = PageGetItemId(page, offset)))
		return false;
	tuple.t_data = (HeapTupleHeader) PageGetItem(page, id);
	tuple.t_len = ItemIdGetLength(id);
	tuple.t_self = row->tid;
	tuple.t_tableOid = RelationGetRelid(bulk->rel);
	if (HeapTupleHeaderGetRawXmin(tuple.t_data) != GetCurrentTransactionId() || !(tuple.t_data->t_infomask & HEAP_XMAX_INVALID))
		return false;
	value = (struct varlena *) DatumGetPointer(heap_getattr(&tuple, column + 1, bulk->desc, &isnull));
	if (isnull || VARATT_IS_EXTERNAL(value) || VARATT_IS_COMPRESSED(value) ||
		VARSIZE_ANY_EXHDR(value) != ARR_OVERHEAD_NONULLS(1) - VARHDRSZ + row->n * sizeof(int64))
		return false;
	copy_scopes(row, VARDATA_ANY(value) + ARR_OVERHEAD_NONULLS(1) - VARHDRSZ);
	return true;
}

/* The rows of one page; those that remain come first afterwards, and their number is returned. */
static int
overwrite_page(Bulk *bulk, int column, Row *rows, int n)
{
	Buffer		buffer = ReadBuffer(bulk->rel, ItemPointerGetBlockNumber(&rows[0].tid));
	GenericXLogState *state;
	Page		page;
	int			remaining = 0;

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	state = GenericXLogStart(bulk->rel);
	page = GenericXLogRegisterBuffer(state, buffer, 0);
	for (int i = 0; i < n; i++)
		if (!overwrite(bulk, column, page, &rows[i]))
			rows[remaining++] = rows[i];
	if (remaining < n)
		GenericXLogFinish(state);
	else
		GenericXLogAbort(state);
	UnlockReleaseBuffer(buffer);
	return remaining;
}

static void
update_row(Bulk *bulk, int column, Row *row)
{
	MemoryContext caller = MemoryContextSwitchTo(bulk->rows);
	ArrayType  *scopes = apply_int8_array(row->n);
	TupleTableSlot *slot;

	if (!bulk_fetch(bulk, &row->tid))
		elog(ERROR, "a row is no longer where it was stored");
	slot = bulk_changed(bulk);
	copy_scopes(row, ARR_DATA_PTR(scopes));
	slot->tts_values[column] = PointerGetDatum(scopes);
	if (!bulk_update(bulk, &row->tid))
		elog(ERROR, "a row was deleted by somebody else");
	MemoryContextSwitchTo(caller);
	MemoryContextReset(bulk->rows);
}

PG_FUNCTION_INFO_V1(synchro_store_scopes);

/* _store_scopes(rel_no int, rows bytea) bigint */
Datum
synchro_store_scopes(PG_FUNCTION_ARGS)
{
	bytea	   *param = PG_GETARG_BYTEA_PP(1);
	Octets		in = {VARDATA_ANY(param), VARDATA_ANY(param) + VARSIZE_ANY_EXHDR(param)};
	Bulk	   *bulk = bulk_open(apply_projection(PG_GETARG_INT32(0)));
	int			column = apply_column(bulk->rel, "scopes");
	Row			rows[MaxHeapTuplesPerPage];
	Row			next;
	int			n = 0;
	int64		total = 0;
	bool		more = in.at < in.end;

	if (more)
		read_row(&in, &next);
	while (more)
	{
		CHECK_FOR_INTERRUPTS();
		for (n = 0; more && n < lengthof(rows) &&
			 (n == 0 || ItemPointerGetBlockNumber(&next.tid) == ItemPointerGetBlockNumber(&rows[0].tid)); n++)
		{
			rows[n] = next;
			more = in.at < in.end;
			if (more)
				read_row(&in, &next);
		}
		total += n;
		n = overwrite_page(bulk, column, rows, n);
		for (int i = 0; i < n; i++)
			update_row(bulk, column, &rows[i]);
	}
	bulk_close(bulk);
	PG_RETURN_INT64(total);
}
