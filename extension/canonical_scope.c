/*
 * canonical_scope.c
 *		Scope digest over the live entries of a scope, streamed.
 *
 * Usually all digests of entries were made under the manifest asked for; then canonical_entries.c reads them. Else there are two passes
 * under one snapshot: one counts, because the count comes first in the hash, one hashes. Memory does not grow with the scope: the
 * executor hands each row to a receiver that only appends to a buffer.
 */
#include "postgres.h"

#include "compat.h"

#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "nodes/params.h"
#include "port/pg_bswap.h"
#include "tcop/dest.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "canonical_scope.h"
#include "errcodes.h"

/* One relation's part of a scope. */
typedef struct Part
{
	int			rel_no;
	const SynRelation *rel;
	int64		entries;
	int64		stale;			/* digests made under another manifest */
} Part;

/* Hashes what the entry query returns. */
typedef struct EntryReceiver
{
	DestReceiver pub;			/* must be first */
	SynScopeHash *hash;
	const Part *part;
	int64		schema_version;
	SynRowReader *reader;
	StringInfoData scratch;
	MemoryContext mcxt;
	MemoryContext row;			/* of one row: a short one is unpacked into a copy */
} EntryReceiver;

static const char count_query[] =
"SELECT c.rel_no, c.entries, c.stale FROM ("
"  SELECT e.rel_no, pg_catalog.count(*) AS entries,"
"         pg_catalog.count(*) FILTER (WHERE e.digest_schema OPERATOR(pg_catalog.<>) $2) AS stale"
"  FROM synchro.scope_entry e WHERE e.scope_no OPERATOR(pg_catalog.=) $1 AND e.state OPERATOR(pg_catalog.=) 'l'"
"  GROUP BY e.rel_no) c"
" WHERE EXISTS (SELECT FROM synchro.manifest_field f"
"  WHERE f.schema_version OPERATOR(pg_catalog.=) $2 AND f.rel_no OPERATOR(pg_catalog.=) c.rel_no)";

static const char entry_query[] =
"SELECT e.key, e.row_digest FROM synchro.scope_entry e"
" WHERE e.scope_no OPERATOR(pg_catalog.=) $1 AND e.rel_no OPERATOR(pg_catalog.=) $2"
" AND e.state OPERATOR(pg_catalog.=) 'l' ORDER BY e.key";

/* Entries with a digest of another manifest bring their projection row. */
static const char stale_query[] =
"SELECT e.key, CASE WHEN e.digest_schema OPERATOR(pg_catalog.=) $3 THEN e.row_digest END, e.server_version, p"
" FROM synchro.scope_entry e LEFT JOIN synchro_data.r_%d p"
" ON e.digest_schema OPERATOR(pg_catalog.<>) $3 AND p.c%d OPERATOR(pg_catalog.=) synchro._key_text('%s', e.key)::%s"
" WHERE e.scope_no OPERATOR(pg_catalog.=) $1 AND e.rel_no OPERATOR(pg_catalog.=) $2"
" AND e.state OPERATOR(pg_catalog.=) 'l' ORDER BY e.key";

static void
flush(SynScopeHash *hash)
{
	if (pg_cryptohash_update(hash->ctx, (uint8 *) hash->buf.data, hash->buf.len) < 0)
		elog(ERROR, "could not compute SHA-256: %s", pg_cryptohash_error(hash->ctx));
	resetStringInfo(&hash->buf);
}

StringInfo
syn_scope_hash_entry(SynScopeHash *hash)
{
	if (hash->buf.len > 48 * 1024)
		flush(hash);
	hash->added++;
	return &hash->buf;
}

void
syn_scope_hash_begin(SynScopeHash *hash, const uint8 *schema_hash, const char *scope_id, int scope_len, uint64 cardinality)
{
	if (scope_len == 0 || !syn_text_ok(scope_id, scope_len))
		ereport(ERROR,
				(errcode(SYNCHRO_ERR_INVALID_PARAMETER),
				 errmsg("malformed scope id")));
	hash->announced = cardinality;
	hash->added = 0;
	hash->ctx = pg_cryptohash_create(PG_SHA256);
	if (!hash->ctx || pg_cryptohash_init(hash->ctx) < 0)
		elog(ERROR, "could not compute SHA-256: %s", pg_cryptohash_error(hash->ctx));
	initStringInfo(&hash->buf);
	enlargeStringInfo(&hash->buf, 64 * 1024);
	syn_append_domain(&hash->buf, "synchro:v3:scope-digest:v1");
	appendBinaryStringInfo(&hash->buf, (const char *) schema_hash, SYN_HASH_LEN);
	syn_append_blob(&hash->buf, scope_id, scope_len);
	syn_append_u64(&hash->buf, cardinality);
}

void
syn_scope_hash_entries(SynScopeHash *hash, const char *data, int len, uint64 count)
{
	flush(hash);
	if (pg_cryptohash_update(hash->ctx, (const uint8 *) data, len) < 0)
		elog(ERROR, "could not compute SHA-256: %s", pg_cryptohash_error(hash->ctx));
	hash->added += count;
}

char *
syn_scope_hash_end(SynScopeHash *hash)
{
	uint8		digest[SYN_HASH_LEN];

	if (hash->added != hash->announced)
		elog(ERROR, "number of scope entries changed while they were read");
	flush(hash);
	if (pg_cryptohash_final(hash->ctx, digest, sizeof(digest)) < 0)
		elog(ERROR, "could not compute SHA-256: %s", pg_cryptohash_error(hash->ctx));
	pg_cryptohash_free(hash->ctx);
	pfree(hash->buf.data);
	return syn_hash_hex(digest);
}

pg_noreturn void
syn_entry_damaged(const char *what)
{
	ereport(ERROR,
			(errcode(SYNCHRO_ERR_SYNC_INTEGRITY_FAILURE),
			 errmsg("stored scope entries are damaged"),
			 errdetail("An entry has %s.", what)));
}

/* Digest of an entry from its projection row. */
static void
append_fresh_digest(EntryReceiver *self, StringInfo buf, TupleTableSlot *slot)
{
	MemoryContext caller;
	text	   *version;
	const SynValue *values;
	uint8		digest[SYN_HASH_LEN];

	MemoryContextReset(self->row);
	caller = MemoryContextSwitchTo(self->row);
	if (slot->tts_isnull[3])
		syn_entry_damaged("no projection row");
	values = syn_read_row(&self->reader, self->part->rel_no, self->schema_version,
						  DatumGetHeapTupleHeader(slot->tts_values[3]), self->mcxt);
	version = DatumGetTextPP(slot->tts_values[2]);
	syn_row_digest(self->part->rel, values, VARDATA_ANY(version), VARSIZE_ANY_EXHDR(version), &self->scratch, digest);
	appendBinaryStringInfo(buf, (char *) digest, SYN_HASH_LEN);
	MemoryContextSwitchTo(caller);
}

static bool
receive_entry(TupleTableSlot *slot, DestReceiver *dest)
{
	EntryReceiver *self = (EntryReceiver *) dest;
	const SynRelation *rel = self->part->rel;
	StringInfo	buf = syn_scope_hash_entry(self->hash);
	struct varlena *stored;
	bytea	   *digest;
	SynValue	key;
	int			start;
	uint64		len;

	slot_getallattrs(slot);
	stored = PG_DETOAST_DATUM_PACKED(slot->tts_values[0]);
	if (!syn_key_from_bytes(rel->fields[rel->key].type, VARDATA_ANY(stored), VARSIZE_ANY_EXHDR(stored), &key))
		syn_entry_damaged("a malformed key");

	start = buf->len;
	syn_append_u64(buf, 0);
	syn_append_identity(buf, rel, &key);
	len = pg_hton64((uint64) (buf->len - start) - sizeof(len));
	memcpy(buf->data + start, &len, sizeof(len));

	if (!slot->tts_isnull[1])
	{
		digest = DatumGetByteaPP(slot->tts_values[1]);
		if (VARSIZE_ANY_EXHDR(digest) != SYN_HASH_LEN)
			syn_entry_damaged("a malformed digest");
		appendBinaryStringInfo(buf, VARDATA_ANY(digest), SYN_HASH_LEN);
	}
	else if (slot->tts_tupleDescriptor->natts > 2)
		append_fresh_digest(self, buf, slot);
	else
		syn_entry_damaged("no digest");
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
entry_query_for(const Part *part)
{
	const SynField *field = &part->rel->fields[part->rel->key];

	if (part->stale == 0)
		return pstrdup(entry_query);

	return psprintf(stale_query, part->rel_no, field->attnum, syn_type_name(field->type), syn_projection_key_type(part->rel_no, field));
}

static void
hash_part(const Part *part, int64 scope_no, int64 schema_version, SynScopeHash *hash)
{
	Oid			types[3] = {INT8OID, INT4OID, INT8OID};
	Datum		values[3] = {Int64GetDatum(scope_no), Int32GetDatum(part->rel_no), Int64GetDatum(schema_version)};
	int			nargs = part->stale ? 3 : 2;
	EntryReceiver receiver = {
		.pub = {.receiveSlot = receive_entry, .rStartup = receiver_startup, .rShutdown = receiver_shutdown,
		.rDestroy = receiver_shutdown, .mydest = DestNone},
		.hash = hash, .part = part, .schema_version = schema_version, .mcxt = CurrentMemoryContext
	};
	SPIExecuteOptions options = {.read_only = true, .dest = &receiver.pub};
	SPIPlanPtr	plan = SPI_prepare(entry_query_for(part), nargs, types);

	if (!plan)
		elog(ERROR, "could not prepare the entry query: %s", SPI_result_code_string(SPI_result));
	initStringInfo(&receiver.scratch);
	receiver.row = AllocSetContextCreate(receiver.mcxt, "row of a scope", ALLOCSET_DEFAULT_SIZES);
	options.params = makeParamList(nargs);
	for (int i = 0; i < nargs; i++)
	{
		options.params->params[i].value = values[i];
		options.params->params[i].isnull = false;
		options.params->params[i].pflags = PARAM_FLAG_CONST;
		options.params->params[i].ptype = types[i];
	}
	if (SPI_execute_plan_extended(plan, &options) < 0)
		elog(ERROR, "could not run the entry query");
	SPI_freeplan(plan);
}

/* Identity prefixes of two relations differ within their table ids, which all have one length or are prefixed with it. */
static int
compare_parts(const void *a, const void *b)
{
	const SynRelation *x = ((const Part *) a)->rel;
	const SynRelation *y = ((const Part *) b)->rel;

	return memcmp(x->identity.data, y->identity.data, Min(x->identity.len, y->identity.len));
}

/* The relations of the manifest with live entries in the scope, in identity order. */
static Part *
count_parts(int64 scope_no, int64 schema_version, int *nparts, uint64 *cardinality)
{
	Oid			types[2] = {INT8OID, INT8OID};
	Datum		values[2] = {Int64GetDatum(scope_no), Int64GetDatum(schema_version)};
	Part	   *parts;
	SPITupleTable *table;

	if (SPI_execute_with_args(count_query, 2, types, values, NULL, true, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not run the count query");
	table = SPI_tuptable;
	*nparts = (int) SPI_processed;
	*cardinality = 0;
	parts = palloc(sizeof(Part) * Max(*nparts, 1));
	for (int i = 0; i < *nparts; i++)
	{
		bool		isnull;

		parts[i].rel_no = DatumGetInt32(SPI_getbinval(table->vals[i], table->tupdesc, 1, &isnull));
		parts[i].entries = DatumGetInt64(SPI_getbinval(table->vals[i], table->tupdesc, 2, &isnull));
		parts[i].stale = DatumGetInt64(SPI_getbinval(table->vals[i], table->tupdesc, 3, &isnull));
		parts[i].rel = syn_relation(parts[i].rel_no, schema_version);
		*cardinality += parts[i].entries;
	}
	qsort(parts, *nparts, sizeof(Part), compare_parts);
	return parts;
}

/* The hash of a manifest; an empty scope has no relation to take it from. */
static void
read_schema_hash(int64 schema_version, uint8 *hash)
{
	Oid			types[1] = {INT8OID};
	Datum		values[1] = {Int64GetDatum(schema_version)};
	char	   *hex;

	if (SPI_execute_with_args("SELECT m.schema_hash FROM synchro.manifest m WHERE m.schema_version OPERATOR(pg_catalog.=) $1",
							  1, types, values, NULL, true, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not read the manifest");
	if (SPI_processed != 1)
		ereport(ERROR,
				(errcode(SYNCHRO_ERR_INVALID_PARAMETER),
				 errmsg("schema version " INT64_FORMAT " does not exist", schema_version)));
	hex = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
	if (!hex || !syn_parse_hash(hex, strlen(hex), hash))
		elog(ERROR, "malformed schema hash");
}

/* _scope_digest(p_scope_no bigint, p_schema_version bigint, p_scope_id text) */
PG_FUNCTION_INFO_V1(synchro_scope_digest);
Datum
synchro_scope_digest(PG_FUNCTION_ARGS)
{
	int64		scope_no = PG_GETARG_INT64(0);
	int64		schema_version = PG_GETARG_INT64(1);
	text	   *scope_id = PG_GETARG_TEXT_PP(2);
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	uint8		schema_hash[SYN_HASH_LEN];
	uint64		cardinality;
	SynScopeHash hash;
	Part	   *parts;
	int			nparts;
	char	   *digest;
	Datum		values[2];
	bool		nulls[2] = {false, false};

	InitMaterializedSRF(fcinfo, 0);
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	read_schema_hash(schema_version, schema_hash);
	digest = syn_current_digest(scope_no, schema_version, schema_hash, scope_id, &cardinality);
	if (digest == NULL)
	{
		parts = count_parts(scope_no, schema_version, &nparts, &cardinality);
		syn_scope_hash_begin(&hash, schema_hash, VARDATA_ANY(scope_id), VARSIZE_ANY_EXHDR(scope_id), cardinality);
		for (int i = 0; i < nparts; i++)
			hash_part(&parts[i], scope_no, schema_version, &hash);
		digest = syn_scope_hash_end(&hash);
	}
	values[0] = CStringGetTextDatum(digest);
	values[1] = Int64GetDatum((int64) cardinality);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	SPI_finish();
	return (Datum) 0;
}
