/*
 * canonical_scope.c
 *		Scope digest over the live entries of a scope, streamed.
 *
 * Usually all digests of entries were made under the manifest asked for; then canonical_entries.c reads them, and what fits is hashed
 * from memory. Else there are two passes under one snapshot: one counts, because the count comes first in the hash, one hashes. Memory
 * does not grow with the scope: the executor hands each row to a receiver that only appends to buffers of a limited size.
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

/* So many octets are hashed at once: few calls, and what was just written is still near the processor. */
#define GATHERED (8 * 1024)

/* One relation's part of a scope. */
typedef struct Part
{
	int			number;			/* in the manifest */
	int			rel_no;
	const SynRelation *rel;
	int64		stale;			/* digests made under another manifest */
} Part;

/* Hashes and gathers what the entry query returns. */
typedef struct EntryReceiver
{
	DestReceiver pub;			/* must be first */
	SynScopeHash *hash;
	SynScopeRows *rows;
	const Part *part;
	int64		schema_version;
	SynRowReader *reader;
	StringInfoData scratch;
	MemoryContext mcxt;
	MemoryContext row;			/* of one row: a short one is unpacked into a copy */
} EntryReceiver;

static const char count_query[] =
"SELECT e.rel_no, pg_catalog.count(*), pg_catalog.count(*) FILTER (WHERE e.digest_schema OPERATOR(pg_catalog.<>) $2)"
" FROM synchro.scope_entry e WHERE e.scope_no OPERATOR(pg_catalog.=) $1 AND e.state OPERATOR(pg_catalog.=) 'l' GROUP BY e.rel_no";

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
	if (SHA256_Update(&hash->state, hash->buf.data, hash->buf.len) != 1)
		elog(ERROR, "could not compute SHA-256");
	resetStringInfo(&hash->buf);
}

StringInfo
syn_scope_hash_entry(SynScopeHash *hash)
{
	if (hash->buf.len > GATHERED)
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
	if (SHA256_Init(&hash->state) != 1)
		elog(ERROR, "could not compute SHA-256");
	initStringInfo(&hash->buf);
	enlargeStringInfo(&hash->buf, 2 * GATHERED);
	syn_append_domain(&hash->buf, "synchro:v3:scope-digest:v1");
	appendBinaryStringInfo(&hash->buf, (const char *) schema_hash, SYN_HASH_LEN);
	syn_append_blob(&hash->buf, scope_id, scope_len);
	syn_append_u64(&hash->buf, cardinality);
}

void
syn_scope_hash_save(SynScopeHash *hash, SynHashState *state)
{
	flush(hash);
	*state = hash->state;
}

void
syn_scope_hash_resume(SynScopeHash *hash, const SynHashState *state, uint64 added)
{
	resetStringInfo(&hash->buf);
	hash->state = *state;
	hash->added = added;
}

void
syn_scope_hash_row(SynScopeHash *hash, const SynRelation *rel, const char *key, int keylen, const void *digest)
{
	StringInfo	buf = syn_scope_hash_entry(hash);
	SynType		type = rel->fields[rel->key].type;
	SynValue	value;
	int			payload;
	uint64		len;
	char	   *to;

	if (!syn_key_from_bytes(type, key, keylen, &value))
		syn_entry_damaged("a malformed key");
	/* As syn_append_identity writes it; this is what a digest spends its time with. */
	payload = type == SYN_STRING ? (int) sizeof(len) + value.len : keylen;
	len = pg_hton64((uint64) rel->identity.len + 2 + payload);
	enlargeStringInfo(buf, sizeof(len) + rel->identity.len + 2 + payload + SYN_HASH_LEN);
	to = buf->data + buf->len;
	memcpy(to, &len, sizeof(len));
	to += sizeof(len);
	memcpy(to, rel->identity.data, rel->identity.len);
	to += rel->identity.len;
	*to++ = type;
	*to++ = 1;
	if (type == SYN_STRING)
	{
		len = pg_hton64((uint64) value.len);
		memcpy(to, &len, sizeof(len));
		memcpy(to + sizeof(len), value.data, value.len);
	}
	else
		memcpy(to, key, keylen);
	to += payload;
	memcpy(to, digest, SYN_HASH_LEN);
	buf->len = to + SYN_HASH_LEN - buf->data;
}

char *
syn_scope_hash_end(SynScopeHash *hash)
{
	uint8		digest[SYN_HASH_LEN];

	if (hash->added != hash->announced)
		elog(ERROR, "number of scope entries changed while they were read");
	flush(hash);
	if (SHA256_Final(digest, &hash->state) != 1)
		elog(ERROR, "could not compute SHA-256");
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
fresh_digest(EntryReceiver *self, TupleTableSlot *slot, uint8 *digest)
{
	MemoryContext caller;
	text	   *version;
	const SynValue *values;

	MemoryContextReset(self->row);
	caller = MemoryContextSwitchTo(self->row);
	if (slot->tts_isnull[3])
		syn_entry_damaged("no projection row");
	values = syn_read_row(&self->reader, self->part->rel_no, self->schema_version,
						  DatumGetHeapTupleHeader(slot->tts_values[3]), self->mcxt);
	version = DatumGetTextPP(slot->tts_values[2]);
	syn_row_digest(self->part->rel, values, VARDATA_ANY(version), VARSIZE_ANY_EXHDR(version), &self->scratch, digest);
	MemoryContextSwitchTo(caller);
}

static bool
receive_entry(TupleTableSlot *slot, DestReceiver *dest)
{
	EntryReceiver *self = (EntryReceiver *) dest;
	struct varlena *key;
	uint8		digest[SYN_HASH_LEN];

	slot_getallattrs(slot);
	key = PG_DETOAST_DATUM_PACKED(slot->tts_values[0]);
	if (!slot->tts_isnull[1])
	{
		bytea	   *stored = DatumGetByteaPP(slot->tts_values[1]);

		if (VARSIZE_ANY_EXHDR(stored) != SYN_HASH_LEN)
			syn_entry_damaged("a malformed digest");
		memcpy(digest, VARDATA_ANY(stored), SYN_HASH_LEN);
	}
	else if (slot->tts_tupleDescriptor->natts > 2)
		fresh_digest(self, slot, digest);
	else
		syn_entry_damaged("no digest");
	syn_scope_hash_row(self->hash, self->part->rel, VARDATA_ANY(key), VARSIZE_ANY_EXHDR(key), digest);
	syn_rows_add(self->rows, self->part->number, VARDATA_ANY(key), VARSIZE_ANY_EXHDR(key), digest);
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
hash_part(const Part *part, int64 scope_no, int64 schema_version, SynScopeHash *hash, SynScopeRows *rows)
{
	Oid			types[3] = {INT8OID, INT4OID, INT8OID};
	Datum		values[3] = {Int64GetDatum(scope_no), Int32GetDatum(part->rel_no), Int64GetDatum(schema_version)};
	int			nargs = part->stale ? 3 : 2;
	EntryReceiver receiver = {
		.pub = {.receiveSlot = receive_entry, .rStartup = receiver_startup, .rShutdown = receiver_shutdown,
		.rDestroy = receiver_shutdown, .mydest = DestNone},
		.hash = hash, .rows = rows, .part = part, .schema_version = schema_version, .mcxt = CurrentMemoryContext
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

static int
compare_parts(const void *a, const void *b)
{
	return ((const Part *) a)->number - ((const Part *) b)->number;
}

/* The relations of the manifest with live entries in the scope, in identity order. */
static Part *
count_parts(int64 scope_no, const SynManifestParts *manifest, int *nparts, uint64 *cardinality)
{
	Oid			types[2] = {INT8OID, INT8OID};
	Datum		values[2] = {Int64GetDatum(scope_no), Int64GetDatum(manifest->schema_version)};
	Part	   *parts;
	SPITupleTable *table;

	if (SPI_execute_with_args(count_query, 2, types, values, NULL, true, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not run the count query");
	table = SPI_tuptable;
	*nparts = 0;
	*cardinality = 0;
	parts = palloc(sizeof(Part) * Max(SPI_processed, 1));
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		Part	   *part = &parts[*nparts];
		bool		isnull;

		part->rel_no = DatumGetInt32(SPI_getbinval(table->vals[i], table->tupdesc, 1, &isnull));
		part->number = syn_manifest_part(manifest, part->rel_no);
		if (part->number < 0)
			continue;
		part->rel = manifest->parts[part->number].rel;
		part->stale = DatumGetInt64(SPI_getbinval(table->vals[i], table->tupdesc, 3, &isnull));
		*cardinality += DatumGetInt64(SPI_getbinval(table->vals[i], table->tupdesc, 2, &isnull));
		(*nparts)++;
	}
	qsort(parts, *nparts, sizeof(Part), compare_parts);
	return parts;
}

/* The digest where some entries have one of another manifest. */
static char *
stale_digest(int64 scope_no, const SynManifestParts *manifest, const text *scope_id, SynScopeRows *rows, uint64 *cardinality)
{
	MemoryContext caller = CurrentMemoryContext;
	SynScopeHash hash;
	Part	   *parts;
	int			nparts;
	char	   *digest;

	syn_rows_reset(rows, 0);
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	parts = count_parts(scope_no, manifest, &nparts, cardinality);
	syn_scope_hash_begin(&hash, manifest->schema_hash, VARDATA_ANY(scope_id), VARSIZE_ANY_EXHDR(scope_id), *cardinality);
	for (int i = 0; i < nparts; i++)
		hash_part(&parts[i], scope_no, manifest->schema_version, &hash, rows);
	digest = MemoryContextStrdup(caller, syn_scope_hash_end(&hash));
	SPI_finish();
	return digest;
}

char *
syn_scope_digest(int64 scope_no, const SynManifestParts *manifest, const text *scope_id, SynScopeRows *rows, uint64 *cardinality)
{
	SynScopeHash hash;

	if (!syn_scope_entries(scope_no, manifest, rows, NULL))
		return stale_digest(scope_no, manifest, scope_id, rows, cardinality);
	*cardinality = rows->count;
	if (rows->complete)
		return syn_rows_digest(rows, manifest, scope_id);
	syn_scope_hash_begin(&hash, manifest->schema_hash, VARDATA_ANY(scope_id), VARSIZE_ANY_EXHDR(scope_id), *cardinality);
	(void) syn_scope_entries(scope_no, manifest, rows, &hash);
	return syn_scope_hash_end(&hash);
}

/* _scope_digest(p_scope_no bigint, p_schema_version bigint, p_scope_id text) */
PG_FUNCTION_INFO_V1(synchro_scope_digest);
Datum
synchro_scope_digest(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	int64		schema_version = PG_GETARG_INT64(1);
	SynManifestParts *manifest = syn_manifest_parts(schema_version);
	SynScopeRows rows;
	uint64		cardinality;
	char	   *digest;
	Datum		values[2];
	bool		nulls[2] = {false, false};

	if (manifest == NULL)
		ereport(ERROR,
				(errcode(SYNCHRO_ERR_INVALID_PARAMETER),
				 errmsg("schema version " INT64_FORMAT " does not exist", schema_version)));
	InitMaterializedSRF(fcinfo, 0);
	syn_rows_init(&rows, SYN_ROWS_GATHERED);
	digest = syn_scope_digest(PG_GETARG_INT64(0), manifest, PG_GETARG_TEXT_PP(2), &rows, &cardinality);
	values[0] = CStringGetTextDatum(digest);
	values[1] = Int64GetDatum((int64) cardinality);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	return (Datum) 0;
}
