/*
 * stage.c
 *		Stages the rows of a scope for rebuilds: records as clients get them, packed into chunks.
 *
 * A chunk is as large as fits into a page of the table with nothing stored elsewhere; one for each row would cost an
 * insertion into heap and index, and a search of both for each row served. The rows stream from the executor into a receiver.
 */
#include "postgres.h"

#include "compat.h"

#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "nodes/params.h"
#include "tcop/dest.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "canonical.h"
#include "errcodes.h"

/* Records of a chunk; larger ones are alone in theirs. The table's toast_tuple_target has room for it and the other columns. */
#define CHUNK_LIMIT 8000

/* No JSON text of ours holds a newline, so the records of a chunk can be told apart by it. */
#define RECORD_SEPARATOR ",\n"

typedef struct StageReceiver
{
	DestReceiver pub;			/* must be first */
	SPIPlanPtr	insert;
	int64		stage_no;
	int64		ordinal;		/* of the chunk's first row */
	int32		rows;			/* in the chunk */
	StringInfoData chunk;
	StringInfoData record;
	int			rel_no;
	int64		schema_version;
	const SynRelation *rel;
	SynRowReader *reader;
	MemoryContext mcxt;			/* outlives a row */
	MemoryContext row;			/* of one row: a short one is unpacked into a copy */
} StageReceiver;

static const char insert_chunk[] =
"INSERT INTO synchro.rebuild_chunk (stage_no, ordinal, row_count, records) VALUES ($1, $2, $3, $4)";

/*
 * The live entries in identity order, each with its row; a digest of another manifest is not fetched. That the row has the version of
 * the entry is checked row by row: as a join condition it would make the planner expect no rows at all.
 */
static const char row_query[] =
"SELECT e.server_version, r.server_version, CASE WHEN e.digest_schema OPERATOR(pg_catalog.=) $3 THEN e.row_digest END, r"
" FROM synchro.scope_entry e JOIN synchro_data.r_%d r"
" ON r.c%d OPERATOR(pg_catalog.=) synchro._key_text('%s', e.key)::%s"
" WHERE e.scope_no OPERATOR(pg_catalog.=) $1 AND e.rel_no OPERATOR(pg_catalog.=) $2"
" AND e.state OPERATOR(pg_catalog.=) 'l' ORDER BY e.key";

static void
flush_chunk(StageReceiver *self)
{
	Datum		values[4];

	if (self->rows == 0)
		return;
	values[0] = Int64GetDatum(self->stage_no);
	values[1] = Int64GetDatum(self->ordinal);
	values[2] = Int32GetDatum(self->rows);
	values[3] = PointerGetDatum(cstring_to_text_with_len(self->chunk.data, self->chunk.len));
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	if (SPI_execute_plan(self->insert, values, NULL, false, 0) != SPI_OK_INSERT)
		elog(ERROR, "could not store a chunk of a stage");
	SPI_finish();
	pfree(DatumGetPointer(values[3]));
	self->ordinal += self->rows;
	self->rows = 0;
	resetStringInfo(&self->chunk);
}

/* The record of a row, as protocol.md describes it. */
static void
build_record(StageReceiver *self, const SynValue *values, const uint8 *digest, text *version)
{
	const SynRelation *rel = self->rel;
	StringInfo	out = &self->record;

	resetStringInfo(out);
	appendStringInfo(out, "{\"table\":\"%s\",\"pk\":{\"%s\":", rel->table_id, rel->fields[rel->key].field_id);
	syn_append_json(out, &values[rel->key]);
	appendStringInfoString(out, "},\"row\":");
	syn_append_row_json(out, rel, values);
	appendStringInfoString(out, ",\"row_checksum\":{\"algorithm\":\"sha256\",\"version\":1,\"encoding\":\"hex\",\"digest\":\"");
	enlargeStringInfo(out, 2 * SYN_HASH_LEN);
	out->len += hex_encode((const char *) digest, SYN_HASH_LEN, out->data + out->len);
	appendStringInfoString(out, "\"},\"server_version\":");
	jcs_append_string(out, VARDATA_ANY(version), VARSIZE_ANY_EXHDR(version));
	appendStringInfoChar(out, '}');
}

static bool
receive_row(TupleTableSlot *slot, DestReceiver *dest)
{
	StageReceiver *self = (StageReceiver *) dest;
	MemoryContext caller;
	const SynValue *values;
	text	   *version;
	text	   *row_version;
	uint8		digest[SYN_HASH_LEN];

	MemoryContextReset(self->row);
	caller = MemoryContextSwitchTo(self->row);
	slot_getallattrs(slot);
	version = DatumGetTextPP(slot->tts_values[0]);
	row_version = DatumGetTextPP(slot->tts_values[1]);
	if (VARSIZE_ANY_EXHDR(version) != VARSIZE_ANY_EXHDR(row_version) ||
		memcmp(VARDATA_ANY(version), VARDATA_ANY(row_version), VARSIZE_ANY_EXHDR(version)) != 0)
		ereport(ERROR,
				(errcode(SYNCHRO_ERR_SYNC_INTEGRITY_FAILURE),
				 errmsg("a projection row does not have the version of its scope entry")));
	values = syn_read_row(&self->reader, self->rel_no, self->schema_version, DatumGetHeapTupleHeader(slot->tts_values[3]), self->mcxt);
	if (slot->tts_isnull[2])
		syn_row_digest(self->rel, values, VARDATA_ANY(version), VARSIZE_ANY_EXHDR(version), &self->record, digest);
	else
	{
		bytea	   *stored = DatumGetByteaPP(slot->tts_values[2]);

		if (VARSIZE_ANY_EXHDR(stored) != SYN_HASH_LEN)
			ereport(ERROR,
					(errcode(SYNCHRO_ERR_SYNC_INTEGRITY_FAILURE),
					 errmsg("a scope entry has a malformed digest")));
		memcpy(digest, VARDATA_ANY(stored), SYN_HASH_LEN);
	}
	build_record(self, values, digest, version);
	if (self->rows > 0 && self->chunk.len + self->record.len > CHUNK_LIMIT)
		flush_chunk(self);
	if (self->rows++ > 0)
		appendStringInfoString(&self->chunk, RECORD_SEPARATOR);
	appendBinaryStringInfo(&self->chunk, self->record.data, self->record.len);
	MemoryContextSwitchTo(caller);
	return true;
}

static void
receiver_startup(DestReceiver *self, int operation, TupleDesc typeinfo)
{
}

static void
receiver_shutdown(DestReceiver *self)
{
}

static char *
row_query_for(const SynRelation *rel, int rel_no)
{
	const SynField *key = &rel->fields[rel->key];

	return psprintf(row_query, rel_no, key->attnum, syn_type_name(key->type), syn_projection_key_type(rel_no, key));
}

static SPIPlanPtr
prepare(const char *query, int nargs, Oid *types)
{
	SPIPlanPtr	plan = SPI_prepare(query, nargs, types);

	if (!plan)
		elog(ERROR, "could not prepare: %s", SPI_result_code_string(SPI_result));
	return plan;
}

/* _stage_rows(p_stage_no bigint, p_ordinal bigint, p_scope_no bigint, p_rel int, p_schema_version bigint) bigint: rows staged */
PG_FUNCTION_INFO_V1(synchro_stage_rows);
Datum
synchro_stage_rows(PG_FUNCTION_ARGS)
{
	Oid			insert_types[] = {INT8OID, INT8OID, INT4OID, TEXTOID};
	Oid			types[] = {INT8OID, INT4OID, INT8OID};
	Datum		values[] = {PG_GETARG_DATUM(2), PG_GETARG_DATUM(3), PG_GETARG_DATUM(4)};
	StageReceiver self = {
		.pub = {.receiveSlot = receive_row, .rStartup = receiver_startup, .rShutdown = receiver_shutdown,
		.rDestroy = receiver_shutdown, .mydest = DestNone},
		.stage_no = PG_GETARG_INT64(0), .ordinal = PG_GETARG_INT64(1), .rel_no = PG_GETARG_INT32(3),
		.schema_version = PG_GETARG_INT64(4)
	};
	SPIExecuteOptions options = {.read_only = true, .dest = &self.pub};
	SPIPlanPtr	plan;

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	self.mcxt = CurrentMemoryContext;
	self.row = AllocSetContextCreate(self.mcxt, "row of a stage", ALLOCSET_DEFAULT_SIZES);
	self.rel = syn_relation(self.rel_no, self.schema_version);
	self.insert = prepare(insert_chunk, lengthof(insert_types), insert_types);
	initStringInfo(&self.chunk);
	initStringInfo(&self.record);
	plan = prepare(row_query_for(self.rel, self.rel_no), lengthof(types), types);
	options.params = makeParamList(lengthof(types));
	for (int i = 0; i < lengthof(types); i++)
	{
		options.params->params[i].value = values[i];
		options.params->params[i].isnull = false;
		options.params->params[i].pflags = PARAM_FLAG_CONST;
		options.params->params[i].ptype = types[i];
	}
	if (SPI_execute_plan_extended(plan, &options) < 0)
		elog(ERROR, "could not read the rows of a scope");
	flush_chunk(&self);
	SPI_finish();
	PG_RETURN_INT64(self.ordinal - PG_GETARG_INT64(1));
}
