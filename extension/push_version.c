/*
 * push_version.c
 *		Which version a source row has (docs/push.md).
 *
 * No table maps rows to versions. The projection knows the version of the row version whose xmin it stores; a row written by a push
 * that is not materialized yet has a fence row with the exact xmin. A row version that neither explains was written directly and is
 * still on its way through the WAL: a marker is written behind it and awaited. If a row that was there before the marker still
 * differs after it, the table was rewritten, and the projection is right.
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#include "errcodes.h"
#include "fence.h"
#include "push.h"

/* The target row with that key text. */
static PushRow *
find_row(PushRelation *rel, const char *key_text)
{
	int			low = 0;
	int			high = rel->nrows;

	while (low < high)
	{
		int			mid = (low + high) / 2;
		int			order = strcmp(rel->rows[mid]->key_text, key_text);

		if (order == 0)
			return rel->rows[mid];
		if (order < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

/* Keys as an array of the key type, or of text. */
static Datum
key_array(PushRow **rows, int nrows, Oid type)
{
	Datum	   *elems = palloc(sizeof(Datum) * nrows);
	int16		typlen;
	bool		byval;
	char		align;

	for (int i = 0; i < nrows; i++)
		elems[i] = type == TEXTOID ? CStringGetTextDatum(rows[i]->key_text) : rows[i]->key;
	get_typlenbyvalalign(type, &typlen, &byval, &align);
	return PointerGetDatum(construct_array(elems, nrows, type, typlen, byval, align));
}

/* The row that a result row is about, by the key in its first column. */
static PushRow *
result_row(PushRelation *rel, uint64 i)
{
	return find_row(rel, OutputFunctionCall(&rel->key_output, push_column(i, 1, NULL)));
}

/* What the writer sees of some target rows of one relation. */
typedef struct SourceRead
{
	PushRelation *rel;
	PushRow   **rows;
	int			nrows;
} SourceRead;

static bool
read_source(PushBatch *batch, void *subject)
{
	SourceRead *read = subject;
	PushRelation *rel = read->rel;
	char	   *sql = psprintf("SELECT t.%s, t.xmin FROM %s AS t WHERE t.%s OPERATOR(pg_catalog.=) ANY ($1)",
							   rel->key->name, rel->source, rel->key->name);
	Datum		keys = key_array(read->rows, read->nrows, rel->key->typid);
	PushRole	saved;
	uint64		n;

	push_enter(batch, &saved);
	n = push_exec(sql, 1, &rel->key_array, &keys, NULL);
	push_leave(batch, &saved);
	for (uint64 i = 0; i < n; i++)
	{
		PushRow    *row = result_row(rel, i);

		if (row)
			row->xmin = DatumGetTransactionId(push_column(i, 2, NULL));
		if (row && TransactionIdIsCurrentTransactionId(row->xmin))
			ereport(ERROR,
					(errcode(SYNCHRO_ERR_WRONG_TRANSACTION_STATE),
					 errmsg("a row to be pushed to was written earlier in the same transaction")));
	}
	SPI_freetuptable(SPI_tuptable);
	return true;
}

/* False: a function of the application failed. */
static bool
try_read(PushBatch *batch, SourceRead *read)
{
	bool		kept;
	ErrorData  *error = push_subtransaction(batch, read_source, read, &kept);

	if (!error)
		return true;
	if (!push_error_is_outcome(error, batch->application))
		ReThrowError(error);
	FreeErrorData(error);
	return false;
}

/*
 * Reads all target rows of a relation. Policies run functions of the application: when one fails, the rows are read one by one, and
 * the row that it fails for is left to its mutation, which will meet the same error.
 */
static void
read_rows(PushBatch *batch, PushRelation *rel)
{
	SourceRead	all = {rel, rel->rows, rel->nrows};

	for (int i = 0; i < rel->nrows; i++)
	{
		rel->rows[i]->xmin = InvalidTransactionId;
		rel->rows[i]->version = NULL;
	}
	if (try_read(batch, &all))
		return;
	for (int i = 0; i < rel->nrows; i++)
	{
		SourceRead	one = {rel, &rel->rows[i], 1};

		(void) try_read(batch, &one);
	}
}

/* Versions that the projection knows. after_marker: rows unchanged since the marker have the projection's version in any case. */
static void
explain_by_projection(PushRelation *rel, bool after_marker)
{
	char	   *sql = psprintf("SELECT p.c%d, p.row_xmin, p.server_version FROM synchro_data.r_%d AS p"
							   " WHERE p.c%d OPERATOR(pg_catalog.=) ANY ($1)",
							   rel->key->field->attnum, rel->rel_no, rel->key->field->attnum);
	Datum		keys = key_array(rel->rows, rel->nrows, rel->key->typid);
	uint64		n = push_exec(sql, 1, &rel->key_array, &keys, NULL);

	for (uint64 i = 0; i < n; i++)
	{
		PushRow    *row = result_row(rel, i);

		if (row && TransactionIdIsValid(row->xmin) &&
			(TransactionIdEquals(row->xmin, DatumGetTransactionId(push_column(i, 2, NULL))) ||
			 (after_marker && TransactionIdEquals(row->xmin, row->marked))))
			row->version = TextDatumGetCString(push_column(i, 3, NULL));
	}
	SPI_freetuptable(SPI_tuptable);
}

/* Versions that a push wrote and the worker has not materialized. */
static void
explain_by_fences(PushRelation *rel)
{
	static const char sql[] =
	"SELECT f.key, f.row_xmin, f.server_version FROM synchro.push_fence f WHERE f.rel_no OPERATOR(pg_catalog.=) $1"
	" AND f.key OPERATOR(pg_catalog.=) ANY ($2) AND f.op OPERATOR(pg_catalog.<>) 'D' ORDER BY f.top_xid, f.ordinal";
	static const Oid types[] = {INT4OID, TEXTARRAYOID};
	Datum		args[2] = {Int32GetDatum(rel->rel_no), key_array(rel->rows, rel->nrows, TEXTOID)};
	uint64		n = push_exec(sql, 2, types, args, NULL);

	for (uint64 i = 0; i < n; i++)
	{
		PushRow    *row = find_row(rel, TextDatumGetCString(push_column(i, 1, NULL)));

		if (row && TransactionIdEquals(row->xmin, DatumGetTransactionId(push_column(i, 2, NULL))))
			row->version = TextDatumGetCString(push_column(i, 3, NULL));
	}
	SPI_freetuptable(SPI_tuptable);
}

static int
count_unexplained(PushRelation *rel)
{
	int			n = 0;

	for (int i = 0; i < rel->nrows; i++)
		if (TransactionIdIsValid(rel->rows[i]->xmin) && !rel->rows[i]->version)
			n++;
	return n;
}

/* Reads all target rows and the versions that are known of them; returns how many versions are not. */
static int
explain_rows(PushBatch *batch, bool after_marker)
{
	int			unexplained = 0;

	for (int i = 0; i < batch->nrelations; i++)
	{
		PushRelation *rel = &batch->relations[i];

		if (rel->nrows == 0)
			continue;
		read_rows(batch, rel);
		explain_by_projection(rel, after_marker);
		if (count_unexplained(rel) > 0)
			explain_by_fences(rel);
		unexplained += count_unexplained(rel);
	}
	return unexplained;
}

/*
 * Remembers what the row was before the marker. A row that was already there before an earlier one must be in the projection; once
 * it may have been deleted between the two reads.
 */
static void
mark(PushRow *row)
{
	if (TransactionIdIsValid(row->xmin) && !row->version && TransactionIdEquals(row->marked, row->xmin) && ++row->misses > 1)
		ereport(ERROR,
				(errcode(SYNCHRO_ERR_SYNC_INTEGRITY_FAILURE),
				 errmsg("a row of a registered relation is missing in its projection")));
	row->marked = row->xmin;
}

/* Writes a marker and waits until everything before it is materialized. */
static void
await_capture(PushBatch *batch, TimestampTz deadline)
{
	static const char sql[] = "SELECT synchro._await_progress(synchro._emit_marker(), $1)";
	static const Oid types[] = {INT4OID};
	long		left = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), deadline);
	Datum		arg = Int32GetDatum((int32) left);
	bool		null = true;
	bool		reached = false;

	for (int i = 0; i < batch->nrelations; i++)
		for (int j = 0; j < batch->relations[i].nrows; j++)
			mark(batch->relations[i].rows[j]);
	if (left > 0 && push_exec(sql, 1, types, &arg, NULL) == 1)
		reached = DatumGetBool(push_column(0, 1, &null)) && !null;
	if (!reached)
		ereport(ERROR,
				(errcode(SYNCHRO_ERR_TEMPORARY_UNAVAILABLE),
				 errmsg("capture did not reach the rows of the push in time")));
	SPI_freetuptable(SPI_tuptable);
}

/* Establishes the version of every visible target row, waiting for capture where it must. Takes no row lock. */
void
push_establish_versions(PushBatch *batch, TimestampTz deadline)
{
	bool		marked = false;

	while (explain_rows(batch, marked) > 0)
	{
		await_capture(batch, deadline);
		marked = true;
	}
}

/* The last fence of this push for a row: its version, operation and xmin; NULL: none. */
const char *
push_last_fence(PushRow *row, char *op, TransactionId *xmin)
{
	const PushedFence *fence = fence_pushed_last(row->rel->rel_no, row->key_text);

	if (!fence)
		return NULL;
	*op = fence->op;
	*xmin = fence->xmin;
	return pstrdup(fence->version);
}

/* Version of the row version with that xmin, which is visible or locked now; NULL: the row changed since this round began. */
const char *
push_current_version(PushRow *row, TransactionId xmin)
{
	if (TransactionIdIsCurrentTransactionId(xmin))
	{
		char		op;
		TransactionId fenced;
		const char *version = push_last_fence(row, &op, &fenced);

		if (!version || op == 'D' || !TransactionIdEquals(fenced, xmin))
			ereport(ERROR,
					(errcode(SYNCHRO_ERR_WRONG_TRANSACTION_STATE),
					 errmsg("a row was written in this transaction without a fence")));
		return version;
	}
	return row->version && TransactionIdEquals(row->xmin, xmin) ? row->version : NULL;
}

/* Version of the deleted row of that key; NULL: no such row was deleted. */
const char *
push_tombstone(PushRow *row)
{
	static const char sql[] =
	"SELECT d.server_version FROM synchro.tombstone d WHERE d.rel_no OPERATOR(pg_catalog.=) $1"
	" AND d.key OPERATOR(pg_catalog.=) $2";
	static const Oid types[] = {INT4OID, TEXTOID};
	Datum		args[2] = {Int32GetDatum(row->rel->rel_no), CStringGetTextDatum(row->key_text)};
	const char *version = NULL;

	if (push_exec(sql, 2, types, args, NULL) == 1)
		version = TextDatumGetCString(push_column(0, 1, NULL));
	SPI_freetuptable(SPI_tuptable);
	return version;
}
