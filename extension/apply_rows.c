/*
 * apply_rows.c
 *		Stores changed rows in a projection, for the worker.
 *
 * One call takes a relation's rows as the stream has them: values as text. Rows that were not there are written many to a page; the
 * others are searched by key one by one.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "apply.h"
#include "bulk.h"
#include "canonical.h"
#include "compat.h"
#include "random.h"

/* How a row is stored. */
#define ROW_NEW 'n'				/* it was not there */
#define ROW_ANY 'a'				/* it may be there */
#define ROW_OLD 'o'				/* it is there: some columns keep their value */

/* In place of a length. */
#define VALUE_NULL 0xFFFFFFFF
#define VALUE_KEPT 0xFFFFFFFE

typedef struct Column
{
	int			index;			/* in the projection */
	Oid			type;
	FmgrInfo	input;
	Oid			input_param;
} Column;

typedef struct Apply
{
	Teller		teller;
	Bulk	   *bulk;
	bool		tells;			/* of a synced relation */
	int			ncolumns;
	Column	   *columns;
	int			xmin;			/* in the projection */
	Datum		placeholder;	/* as many zeros as a row will probably have scopes, which will be written over them */
	int			tid_at[BULK_ROWS];	/* of the rows that wait, in out */
	Size		bytes;			/* of them */
} Apply;

Oid
apply_projection(int rel_no)
{
	char		name[NAMEDATALEN];
	Oid			relid;

	snprintf(name, sizeof(name), "r_%d", rel_no);
	relid = get_relname_relid(name, get_namespace_oid("synchro_data", false));
	if (!OidIsValid(relid))
		ereport(ERROR, (errcode(SYNCHRO_ERR_INVALID_PARAMETER), errmsg("there is no such projection")));
	return relid;
}

int
apply_column(Relation rel, const char *name)
{
	AttrNumber	attno = get_attnum(RelationGetRelid(rel), name);

	if (attno == InvalidAttrNumber)
		ereport(ERROR, (errcode(SYNCHRO_ERR_INVALID_PARAMETER), errmsg("the table lacks column %s", name)));
	return attno - 1;
}

int
apply_captured_column(Relation rel, int attnum)
{
	char		name[16];

	snprintf(name, sizeof(name), "c%d", attnum);
	return apply_column(rel, name);
}

ArrayType *
apply_int8_array(int n)
{
	Datum	   *zeros;

	if (n == 0)
		return construct_empty_array(INT8OID);
	zeros = palloc0(sizeof(Datum) * n);
	for (int i = 0; i < n; i++)
		zeros[i] = Int64GetDatum(0);
	return construct_array(zeros, n, INT8OID, sizeof(int64), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE);
}

static void
read_columns(Apply *a, Octets *in)
{
	Relation	rel = a->bulk->rel;

	a->ncolumns = octets_u16(in);
	a->columns = palloc(sizeof(Column) * Max(a->ncolumns, 1));
	for (int i = 0; i < a->ncolumns; i++)
	{
		Column	   *c = &a->columns[i];
		Oid			input;

		c->index = apply_captured_column(rel, (int16) octets_u16(in));
		c->type = TupleDescAttr(a->bulk->desc, c->index)->atttypid;
		getTypeInputInfo(c->type, &input, &c->input_param);
		fmgr_info(input, &c->input);
	}
}

/* A value's text is followed by an octet 0. */
static Datum
read_value(Column *c, const char *text, uint32 len)
{
	if (c->type == TEXTOID)
		return PointerGetDatum(cstring_to_text_with_len(text, len));
	if (text[len] != '\0')
		ereport(ERROR, (errcode(SYNCHRO_ERR_INVALID_PARAMETER), errmsg("malformed rows")));
	return InputFunctionCall(&c->input, unconstify(char *, text), c->input_param, -1);
}

static void
set(TupleTableSlot *slot, int index, Datum value)
{
	slot->tts_values[index] = value;
	slot->tts_isnull[index] = false;
}

static void
flush(Apply *a)
{
	int			n = bulk_flush(a->bulk);

	if (a->tells)
		for (int i = 0; i < n; i++)
			tell_tid(&a->teller, a->tid_at[i], &a->bulk->slots[i]->tts_tid);
	a->bytes = 0;
}

/* Reads the values of a row into a slot, over those it has. */
static void
read_values(Apply *a, Octets *in, TupleTableSlot *slot, bool may_keep)
{
	for (int i = 0; i < a->ncolumns; i++)
	{
		Column	   *c = &a->columns[i];
		uint32		len = octets_u32(in);

		if (len == VALUE_KEPT && may_keep)
			continue;
		slot->tts_isnull[c->index] = len == VALUE_NULL;
		if (len == VALUE_NULL)
			continue;
		if (len >= MaxAllocSize)
			ereport(ERROR, (errcode(SYNCHRO_ERR_INVALID_PARAMETER), errmsg("malformed rows")));
		slot->tts_values[c->index] = read_value(c, octets_take(in, (size_t) len + 1), len);
	}
}

static void
insert_row(Apply *a, TupleTableSlot *slot, const char *version)
{
	set(slot, a->teller.scopes, a->placeholder);
	if (a->tells)
		a->tid_at[a->bulk->waiting] = tell(&a->teller, slot, version, TOLD_NEW);
	bulk_insert(a->bulk, false);
}

/* Stores a row over the one that is there. */
static void
update_row(Apply *a, TupleTableSlot *slot, const char *version)
{
	ItemPointerData tid;
	int			at = a->tells ? tell(&a->teller, slot, version, 0) : 0;

	if (!bulk_update(a->bulk, &tid))
		elog(ERROR, "a row was deleted by somebody else");
	if (a->tells)
		tell_tid(&a->teller, at, &tid);
}

static void
store_row(Apply *a, Octets *in)
{
	const char *start = in->at;
	char		how = octets_u8(in);
	const char *version = octets_take(in, SYN_VERSION_LEN);
	TransactionId xmin = octets_u32(in);
	Octets		values = *in;
	TupleTableSlot *slot = bulk_slot(a->bulk);
	bool		there;

	memset(slot->tts_isnull, true, sizeof(bool) * a->bulk->desc->natts);
	read_values(a, in, slot, how == ROW_OLD);
	there = how != ROW_NEW && bulk_find(a->bulk, &slot->tts_values[a->teller.key]);
	if (there)
	{
		slot = bulk_changed(a->bulk);
		read_values(a, &values, slot, how == ROW_OLD);
	}
	else if (how == ROW_OLD)
		ereport(ERROR, (errcode(SYNCHRO_ERR_INVALID_PARAMETER), errmsg("a row is not in its projection")));
	set(slot, a->teller.version, PointerGetDatum(cstring_to_text_with_len(version, SYN_VERSION_LEN)));
	set(slot, a->xmin, TransactionIdGetDatum(xmin));
	a->bytes += in->at - start;
	if (there)
		update_row(a, slot, version);
	else
		insert_row(a, slot, version);
	if (a->bulk->waiting == BULK_ROWS || a->bytes > BULK_BYTES)
		flush(a);
}

static void
prepare(Apply *a, FunctionCallInfo fcinfo, Octets *in)
{
	tell_begin(&a->teller, fcinfo);
	a->tells = a->teller.schema_version != 0;
	a->bulk = a->teller.bulk;
	a->xmin = apply_column(a->bulk->rel, "row_xmin");
	a->placeholder = PointerGetDatum(apply_int8_array(octets_u8(in)));
	read_columns(a, in);
}

PG_FUNCTION_INFO_V1(synchro_store_rows);

/* _store_rows(rel_no int, schema_version bigint, key_attnum smallint, deleted_attnum smallint, rows bytea) bytea */
Datum
synchro_store_rows(PG_FUNCTION_ARGS)
{
	bytea	   *rows = PG_GETARG_BYTEA_PP(4);
	Octets		in = {VARDATA_ANY(rows), VARDATA_ANY(rows) + VARSIZE_ANY_EXHDR(rows)};
	Apply	   *a = palloc0(sizeof(Apply));
	MemoryContext caller;

	prepare(a, fcinfo, &in);
	caller = MemoryContextSwitchTo(a->bulk->rows);
	while (in.at < in.end)
		store_row(a, &in);
	flush(a);
	MemoryContextSwitchTo(caller);
	PG_RETURN_BYTEA_P(tell_end(&a->teller));
}
