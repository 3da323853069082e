/*
 * canonical_relation.c
 *		Session cache of relation descriptors: the fields of a relation under a manifest.
 *
 * A manifest never changes, so an entry is good for the session. Two things can still make it wrong: the extension is dropped and
 * created again (seen as a relcache invalidation of its tables), or the transaction that inserted the manifest aborts.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/uuid.h"

#include "actas.h"
#include "canonical.h"
#include "compat.h"
#include "errcodes.h"

typedef struct RelationKey
{
	int64		schema_version;
	int64		rel_no;
} RelationKey;

typedef struct RelationEntry
{
	RelationKey key;			/* must be first: hash key */
	SynRelation rel;
} RelationEntry;

static MemoryContext cache_cxt = NULL;
static HTAB *cache = NULL;
static Oid	cache_tables[3];
static bool cache_stale = false;
static bool cache_provisional = false;	/* holds a manifest that this transaction inserted */
static bool callbacks_registered = false;
static SPIPlanPtr load_plan = NULL;

static const char *const table_names[] = {"relation", "manifest", "manifest_field"};

static const char load_query[] =
"SELECT f.field_id, f.column_name, f.attnum, f.type, f.as_text, f.nullable, f.is_key, l.table_id, m.schema_hash, m.xmin"
" FROM synchro.manifest_field f"
" JOIN synchro.manifest m ON m.schema_version OPERATOR(pg_catalog.=) f.schema_version"
" JOIN synchro.relation l ON l.rel_no OPERATOR(pg_catalog.=) f.rel_no"
" WHERE f.schema_version OPERATOR(pg_catalog.=) $1 AND f.rel_no OPERATOR(pg_catalog.=) $2";

static void
on_relcache_invalidation(Datum arg, Oid relid)
{
	if (!OidIsValid(relid))
		cache_stale = true;
	for (int i = 0; i < lengthof(cache_tables); i++)
		if (relid == cache_tables[i])
			cache_stale = true;
}

static void
on_transaction_end(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_PARALLEL_PRE_COMMIT || event == XACT_EVENT_PRE_PREPARE)
		return;
	if (cache_provisional && event != XACT_EVENT_COMMIT && event != XACT_EVENT_PARALLEL_COMMIT)
		cache_stale = true;
	cache_provisional = false;
}

static void
on_subtransaction_end(SubXactEvent event, SubTransactionId my, SubTransactionId parent, void *arg)
{
	if (cache_provisional && event == SUBXACT_EVENT_ABORT_SUB)
		cache_stale = true;
}

/*
 * An empty cache. Callers up the stack may still hold descriptors, so the old ones are only freed with the transaction.
 */
static void
renew_cache(void)
{
	HASHCTL		ctl = {.keysize = sizeof(RelationKey), .entrysize = sizeof(RelationEntry)};
	Oid			tables[lengthof(cache_tables)];

	if (!callbacks_registered)
	{
		CacheRegisterRelcacheCallback(on_relcache_invalidation, (Datum) 0);
		RegisterXactCallback(on_transaction_end, NULL);
		RegisterSubXactCallback(on_subtransaction_end, NULL);
		callbacks_registered = true;
	}
	/* What may fail comes before there is a cache: one that doesn't know its tables would never be renewed. */
	for (int i = 0; i < lengthof(cache_tables); i++)
		tables[i] = get_relname_relid(table_names[i], get_namespace_oid("synchro", false));
	if (cache_cxt)
		MemoryContextSetParent(cache_cxt, TopTransactionContext);
	cache = NULL;
	cache_cxt = NULL;
	cache_cxt = AllocSetContextCreate(TopMemoryContext, "synchro relations", ALLOCSET_DEFAULT_SIZES);
	ctl.hcxt = cache_cxt;
	cache = hash_create("synchro relations", 32, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);

	memcpy(cache_tables, tables, sizeof(tables));
	cache_stale = false;
	cache_provisional = false;
}

/* A column of the current SPI row that the schema declares NOT NULL. */
static Datum
column(int row, int n)
{
	bool		isnull;
	Datum		datum = SPI_getbinval(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, n, &isnull);

	if (isnull)
		elog(ERROR, "unexpected null in column %d of the manifest query", n);
	return datum;
}

static const char *
uuid_text(Datum datum)
{
	return DatumGetCString(DirectFunctionCall1(uuid_out, datum));
}

/* The rows of the query as a descriptor in the current memory context. */
static void
read_relation(SynRelation *rel)
{
	text	   *hash = DatumGetTextPP(column(0, 9));

	rel->table_id = uuid_text(column(0, 8));
	if (!syn_parse_hash(VARDATA_ANY(hash), VARSIZE_ANY_EXHDR(hash), rel->schema_hash))
		elog(ERROR, "malformed schema hash");
	rel->nfields = (int) SPI_processed;
	rel->fields = palloc0(sizeof(SynField) * rel->nfields);
	rel->key = -1;
	for (int i = 0; i < rel->nfields; i++)
	{
		SynField   *field = &rel->fields[i];
		text	   *type = DatumGetTextPP(column(i, 4));

		field->field_id = uuid_text(column(i, 1));
		field->column = pstrdup(NameStr(*DatumGetName(column(i, 2))));
		field->attnum = DatumGetInt16(column(i, 3));
		if (!syn_type_by_name(VARDATA_ANY(type), VARSIZE_ANY_EXHDR(type), &field->type))
			elog(ERROR, "unknown portable type in a manifest");
		field->as_text = DatumGetBool(column(i, 5));
		field->nullable = DatumGetBool(column(i, 6));
		field->precision = -1;
		if (DatumGetBool(column(i, 7)))
			rel->key = i;
	}
	if (rel->key < 0)
		elog(ERROR, "a manifest describes a relation without key");
	syn_relation_finish(rel);
}

static RelationEntry *
load_relation(const RelationKey *key)
{
	Oid			types[2] = {INT8OID, INT4OID};
	Datum		args[2] = {Int64GetDatum(key->schema_version), Int32GetDatum((int32) key->rel_no)};
	RelationEntry *entry;
	MemoryContext caller;
	SynRelation rel;
	SynActor	actor;

	/* callers need the right to execute our functions, not one to read our tables */
	syn_act_as(&actor, syn_owner());
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	if (!load_plan)
	{
		SPIPlanPtr	plan = SPI_prepare(load_query, 2, types);

		if (!plan || SPI_keepplan(plan) != 0)
			elog(ERROR, "could not prepare the manifest query");
		load_plan = plan;
	}
	if (SPI_execute_plan(load_plan, args, NULL, true, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not run the manifest query");
	syn_act_back(&actor);
	if (SPI_processed == 0)
		ereport(ERROR,
				(errcode(SYNCHRO_ERR_INVALID_PARAMETER),
				 errmsg("relation %d is not part of schema version " INT64_FORMAT,
						(int) key->rel_no, key->schema_version)));

	if (TransactionIdIsCurrentTransactionId(DatumGetTransactionId(column(0, 10))))
		cache_provisional = true;

	caller = MemoryContextSwitchTo(cache_cxt);
	MemSet(&rel, 0, sizeof(rel));
	read_relation(&rel);
	entry = hash_search(cache, key, HASH_ENTER, NULL);
	entry->rel = rel;
	MemoryContextSwitchTo(caller);
	SPI_finish();
	return entry;
}

const SynRelation *
syn_relation(int rel_no, int64 schema_version)
{
	RelationKey key = {.schema_version = schema_version, .rel_no = rel_no};
	RelationEntry *entry;

	if (!cache || cache_stale)
		renew_cache();
	entry = hash_search(cache, &key, HASH_FIND, NULL);
	if (!entry)
		entry = load_relation(&key);
	return &entry->rel;
}

/* SQL type of the key's column in the projection, for a cast: "character" would mean character(1) there. */
char *
syn_projection_key_type(int rel_no, const SynField *key)
{
	char		name[32];
	Oid			relid;
	Oid			typid;

	snprintf(name, sizeof(name), "r_%d", rel_no);
	relid = get_relname_relid(name, get_namespace_oid("synchro_data", false));
	snprintf(name, sizeof(name), "c%d", key->attnum);
	typid = OidIsValid(relid) ? get_atttype(relid, get_attnum(relid, name)) : InvalidOid;
	if (!OidIsValid(typid))
		ereport(ERROR,
				(errcode(SYNCHRO_ERR_SYNC_INTEGRITY_FAILURE),
				 errmsg("projection of relation %d is missing", rel_no)));
	return format_type_extended(typid, -1, FORMAT_TYPE_TYPEMOD_GIVEN | FORMAT_TYPE_FORCE_QUALIFY);
}
