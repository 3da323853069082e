/*
 * canonical_row.c
 *		SQL functions over one row: digest, JSON, identity.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/typcache.h"

#include "canonical.h"
#include "compat.h"
#include "errcodes.h"

struct SynRowReader
{
	int			rel_no;
	int64		schema_version;
	Oid			row_type;
	int32		row_typmod;
	const SynRelation *rel;
	TupleDesc	desc;
	int		   *attnums;		/* per field, 1-based */
	const SynCodec **codecs;
	Datum	   *datums;			/* of the whole row */
	bool	   *nulls;
	SynValue   *values;			/* per field */
	MemoryContext mcxt;			/* of this reader */
	MemoryContext work;			/* of one row */
};

/* Number of the column with that name, or 0. */
static int
find_column(TupleDesc desc, const char *name)
{
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (!att->attisdropped && strcmp(NameStr(att->attname), name) == 0)
			return i + 1;
	}
	return 0;
}

/* Finds every field by its column name or, in a projection, by c<attnum>. */
static bool
map_columns(SynRowReader *reader, bool projection)
{
	for (int i = 0; i < reader->rel->nfields; i++)
	{
		const SynField *field = &reader->rel->fields[i];
		char		name[16];

		if (projection)
			snprintf(name, sizeof(name), "c%d", field->attnum);
		reader->attnums[i] = find_column(reader->desc, projection ? name : field->column);
		if (reader->attnums[i] == 0)
			return false;
	}
	return true;
}

/*
 * The row of a table in synchro_data has projection names, that of another table its own. An anonymous row is taken as a projection
 * row when it has all of those names.
 */
static void
resolve_columns(SynRowReader *reader)
{
	Oid			relation = reader->row_type == RECORDOID ? InvalidOid : get_typ_typrelid(reader->row_type);
	bool		found;

	if (OidIsValid(relation))
		found = map_columns(reader, get_rel_namespace(relation) == get_namespace_oid("synchro_data", true));
	else
		found = map_columns(reader, true) || map_columns(reader, false);
	if (!found)
		ereport(ERROR,
				(errcode(SYNCHRO_ERR_INVALID_PARAMETER),
				 errmsg("row lacks a column of relation %d under schema version " INT64_FORMAT,
						reader->rel_no, reader->schema_version)));

	for (int i = 0; i < reader->rel->nfields; i++)
	{
		const SynField *field = &reader->rel->fields[i];
		Form_pg_attribute att = TupleDescAttr(reader->desc, reader->attnums[i] - 1);

		reader->codecs[i] = syn_codec(att->atttypid, field->type, field->as_text);
		if (!reader->codecs[i])
			ereport(ERROR,
					(errcode(SYNCHRO_ERR_INVALID_PARAMETER),
					 errmsg("column \"%s\" does not have the type that schema version " INT64_FORMAT " describes",
							field->column, reader->schema_version)));
	}
}

/* A reader of rows of one type, in a memory context of its own under parent. */
static SynRowReader *
make_reader(int rel_no, int64 schema_version, Oid row_type, int32 row_typmod, MemoryContext parent)
{
	MemoryContext mcxt = AllocSetContextCreate(parent, "synchro row reader", ALLOCSET_SMALL_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(mcxt);
	SynRowReader *reader = palloc0(sizeof(SynRowReader));

	reader->mcxt = mcxt;
	reader->work = AllocSetContextCreate(mcxt, "synchro row", ALLOCSET_DEFAULT_SIZES);
	reader->rel_no = rel_no;
	reader->schema_version = schema_version;
	reader->row_type = row_type;
	reader->row_typmod = row_typmod;
	reader->rel = syn_relation(rel_no, schema_version);
	reader->desc = lookup_rowtype_tupdesc_copy(reader->row_type, reader->row_typmod);
	reader->attnums = palloc(sizeof(int) * reader->rel->nfields);
	reader->codecs = palloc(sizeof(SynCodec *) * reader->rel->nfields);
	reader->values = palloc(sizeof(SynValue) * reader->rel->nfields);
	reader->datums = palloc(sizeof(Datum) * reader->desc->natts);
	reader->nulls = palloc(sizeof(bool) * reader->desc->natts);
	resolve_columns(reader);
	MemoryContextSwitchTo(caller);
	return reader;
}

/* The reader of rows of that type. */
static SynRowReader *
get_reader(SynRowReader **cached, int rel_no, int64 schema_version, Oid row_type, int32 row_typmod, MemoryContext parent)
{
	SynRowReader *reader = *cached;

	if (reader && (reader->rel_no != rel_no || reader->schema_version != schema_version ||
				   reader->row_type != row_type || reader->row_typmod != row_typmod))
	{
		*cached = NULL;
		MemoryContextDelete(reader->mcxt);
		reader = NULL;
	}
	if (!reader)
		reader = *cached = make_reader(rel_no, schema_version, row_type, row_typmod, parent);
	MemoryContextReset(reader->work);
	return reader;
}

/* Portable values of the row's datums. */
static const SynValue *
convert_row(SynRowReader *reader, const Datum *datums, const bool *nulls)
{
	for (int i = 0; i < reader->rel->nfields; i++)
	{
		int			att = reader->attnums[i] - 1;
		const SynField *field = &reader->rel->fields[i];
		SynValue   *value = &reader->values[i];

		value->type = field->type;
		value->isnull = nulls[att];
		if (value->isnull && i == reader->rel->key)
			ereport(ERROR,
					(errcode(SYNCHRO_ERR_INVALID_PARAMETER),
					 errmsg("row without key")));
		if (!value->isnull && !syn_from_datum(reader->codecs[i], datums[att], value))
			ereport(ERROR,
					(errcode(SYNCHRO_ERR_UNREPRESENTABLE_WRITE),
					 errmsg("column \"%s\" holds a value without portable form", field->column)));
	}
	return reader->values;
}

const SynValue *
syn_read_row(SynRowReader **cached, int rel_no, int64 schema_version, HeapTupleHeader row, MemoryContext parent)
{
	SynRowReader *reader = get_reader(cached, rel_no, schema_version, HeapTupleHeaderGetTypeId(row),
									  HeapTupleHeaderGetTypMod(row), parent);
	MemoryContext caller = MemoryContextSwitchTo(reader->work);
	HeapTupleData tuple;
	const SynValue *values;

	tuple.t_len = HeapTupleHeaderGetDatumLength(row);
	ItemPointerSetInvalid(&tuple.t_self);
	tuple.t_tableOid = InvalidOid;
	tuple.t_data = row;
	heap_deform_tuple(&tuple, reader->desc, reader->datums, reader->nulls);
	values = convert_row(reader, reader->datums, reader->nulls);
	MemoryContextSwitchTo(caller);
	return values;
}

const SynValue *
syn_read_values(SynRowReader **cached, int rel_no, int64 schema_version, Oid row_type, const Datum *datums, const bool *nulls,
				const SynRelation **rel, MemoryContext parent)
{
	SynRowReader *reader = get_reader(cached, rel_no, schema_version, row_type, -1, parent);
	MemoryContext caller = MemoryContextSwitchTo(reader->work);
	const SynValue *values = convert_row(reader, datums, nulls);

	MemoryContextSwitchTo(caller);
	*rel = reader->rel;
	return values;
}

/* Arguments 0 to 2 are relation, schema version and row. */
static const SynValue *
read_argument(FunctionCallInfo fcinfo, const SynRelation **rel)
{
	SynRowReader **cached = (SynRowReader **) &fcinfo->flinfo->fn_extra;
	const SynValue *values = syn_read_row(cached, PG_GETARG_INT32(0), PG_GETARG_INT64(1),
										  PG_GETARG_HEAPTUPLEHEADER(2), fcinfo->flinfo->fn_mcxt);

	*rel = (*cached)->rel;
	return values;
}

static bytea *
make_bytea(const void *data, int len)
{
	return (bytea *) cstring_to_text_with_len(data, len);
}

/* _row_digest(p_rel int, p_schema_version bigint, p_row record, p_server_version text) */
PG_FUNCTION_INFO_V1(synchro_row_digest);
Datum
synchro_row_digest(PG_FUNCTION_ARGS)
{
	const SynRelation *rel;
	const SynValue *values = read_argument(fcinfo, &rel);
	text	   *version = PG_GETARG_TEXT_PP(3);
	StringInfoData scratch;
	uint8		digest[SYN_HASH_LEN];

	if (VARSIZE_ANY_EXHDR(version) == 0)
		ereport(ERROR,
				(errcode(SYNCHRO_ERR_INVALID_PARAMETER),
				 errmsg("server version is empty")));
	initStringInfo(&scratch);
	syn_row_digest(rel, values, VARDATA_ANY(version), VARSIZE_ANY_EXHDR(version), &scratch, digest);
	pfree(scratch.data);
	PG_RETURN_BYTEA_P(make_bytea(digest, SYN_HASH_LEN));
}

void
syn_append_row_json(StringInfo out, const SynRelation *rel, const SynValue *values)
{
	appendStringInfoCharMacro(out, '{');
	for (int i = 0; i < rel->nfields; i++)
	{
		if (i > 0)
			appendStringInfoCharMacro(out, ',');
		appendStringInfoCharMacro(out, '"');
		appendStringInfoString(out, rel->fields[i].field_id);
		appendStringInfoString(out, "\":");
		syn_append_json(out, &values[i]);
	}
	appendStringInfoCharMacro(out, '}');
}

/* _row_json(p_rel int, p_schema_version bigint, p_row record) */
PG_FUNCTION_INFO_V1(synchro_row_json);
Datum
synchro_row_json(PG_FUNCTION_ARGS)
{
	const SynRelation *rel;
	const SynValue *values = read_argument(fcinfo, &rel);
	StringInfoData out;
	text	   *result;

	initStringInfo(&out);
	syn_append_row_json(&out, rel, values);
	result = cstring_to_text_with_len(out.data, out.len);
	pfree(out.data);
	PG_RETURN_TEXT_P(result);
}

/* _row_identity(p_rel int, p_schema_version bigint, p_key_text text) */
PG_FUNCTION_INFO_V1(synchro_row_identity);
Datum
synchro_row_identity(PG_FUNCTION_ARGS)
{
	const SynRelation *rel = syn_relation(PG_GETARG_INT32(0), PG_GETARG_INT64(1));
	text	   *arg = PG_GETARG_TEXT_PP(2);
	SynValue	key;
	StringInfoData out;

	if (!syn_key_from_text(rel->fields[rel->key].type, VARDATA_ANY(arg), VARSIZE_ANY_EXHDR(arg), &key))
		ereport(ERROR,
				(errcode(SYNCHRO_ERR_INVALID_PARAMETER),
				 errmsg("malformed key text")));
	initStringInfo(&out);
	syn_append_identity(&out, rel, &key);
	PG_RETURN_BYTEA_P(make_bytea(out.data, out.len));
}
