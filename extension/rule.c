/*
 * rule.c
 *		Configuration of evaluations. A generation is immutable, so it is read once per session; that its functions are still those
 *		which were registered is verified again whenever any function may have changed.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "actas.h"
#include "errcodes.h"
#include "rule.h"
#include "seceval.h"

static HTAB *cache = NULL;
static Oid	registration_table = InvalidOid;
static bool cache_stale = false;

/* DDL on the registry: the extension may have been dropped and created. */
static void
registration_changed(Datum arg, Oid relid)
{
	if (relid == InvalidOid || relid == registration_table)
		cache_stale = true;
}

static void
forget(Rule *rule)
{
	if (rule->set_plan)
		SPI_freeplan(rule->set_plan);
	if (rule->sorted_plan)
		SPI_freeplan(rule->sorted_plan);
	if (rule->call_plan)
		SPI_freeplan(rule->call_plan);
	hash_search(cache, &rule->key, HASH_REMOVE, NULL);
}

static void
open_cache(void)
{
	HASH_SEQ_STATUS all;
	Rule	   *rule;

	if (cache == NULL)
	{
		HASHCTL		ctl = {.keysize = sizeof(RuleKey), .entrysize = sizeof(Rule), .hcxt = TopMemoryContext};

		CacheRegisterRelcacheCallback(registration_changed, (Datum) 0);
		cache = hash_create("synchro rules", 32, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	registration_table = get_relname_relid("registration", get_namespace_oid("synchro", false));
	if (!cache_stale)
		return;
	hash_seq_init(&all, cache);
	while ((rule = hash_seq_search(&all)) != NULL)
		forget(rule);
	cache_stale = false;
}

static const char membership_query[] =
"SELECT r.membership_function, r.membership_twin, r.membership_hash, r.key_type, r.xmin, a.atttypmod, l.table_id, r.pk_type, "
"CASE r.composition WHEN 'single_scope' THEN 1 ELSE r.max_scope_fanout END, r.composition = 'single_scope', r.twin_hash "
"FROM synchro.registration r JOIN synchro.relation l ON l.rel_no = r.rel_no "
"LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = l.relation_oid AND a.attnum = r.key_attnum "
"WHERE r.generation = $1 AND r.rel_no = $2 AND $3 = 0 AND r.kind = 'synced'";

static const char impact_query[] =
"SELECT d.impact_function, d.impact_twin, d.impact_hash, r.key_type, d.xmin, a.atttypmod, l.table_id, r.pk_type, d.max_impact_rows, false, d.twin_hash "
"FROM synchro.membership_dependency d JOIN synchro.registration r ON r.generation = d.generation AND r.rel_no = d.target_rel_no "
"JOIN synchro.relation l ON l.rel_no = r.rel_no "
"LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = l.relation_oid AND a.attnum = r.key_attnum "
"WHERE d.generation = $1 AND d.target_rel_no = $2 AND d.source_rel_no = $3 AND r.kind = 'synced'";

static Oid
get_oid(HeapTuple tuple, TupleDesc desc, int column)
{
	bool		isnull;
	Datum		value = SPI_getbinval(tuple, desc, column, &isnull);

	return isnull ? InvalidOid : DatumGetObjectId(value);
}

static int32
get_int32(HeapTuple tuple, TupleDesc desc, int column, int32 otherwise)
{
	bool		isnull;
	Datum		value = SPI_getbinval(tuple, desc, column, &isnull);

	return isnull ? otherwise : DatumGetInt32(value);
}

static void
get_text(HeapTuple tuple, TupleDesc desc, int column, char *out, size_t size)
{
	char	   *value = SPI_getvalue(tuple, desc, column);

	strlcpy(out, value ? value : "", size);
}

/* Reads the registry; *ours: this transaction wrote the row, and may still change it or roll it back. */
static void
load(Rule *rule, bool *ours)
{
	Oid			types[] = {INT8OID, INT4OID, INT4OID};
	Datum		values[] = {Int64GetDatum(rule->key.generation), Int32GetDatum(rule->key.target), Int32GetDatum(rule->key.source)};
	SynActor	caller;
	HeapTuple	tuple;
	TupleDesc	desc;
	bool		isnull;

	syn_act_as(&caller, syn_owner());
	SPI_connect();
	if (SPI_execute_with_args(rule_is_impact(rule) ? impact_query : membership_query, lengthof(types), types, values, NULL,
							  true, 1) != SPI_OK_SELECT)
		elog(ERROR, "could not read the registry");
	if (SPI_processed == 0)
		ereport(ERROR,
				(errcode(SYNCHRO_ERR_INVALID_PARAMETER),
				 errmsg(rule_is_impact(rule) ? "the dependency is not registered in that generation"
						: "the relation is not synced in that generation")));
	tuple = SPI_tuptable->vals[0];
	desc = SPI_tuptable->tupdesc;
	rule->function = get_oid(tuple, desc, 1);
	rule->twin = get_oid(tuple, desc, 2);
	get_text(tuple, desc, 3, rule->hash, sizeof(rule->hash));
	rule->key_type = get_oid(tuple, desc, 4);
	*ours = TransactionIdIsCurrentTransactionId(DatumGetTransactionId(SPI_getbinval(tuple, desc, 5, &isnull)));
	rule->key_typmod = get_int32(tuple, desc, 6, -1);
	get_text(tuple, desc, 7, rule->table_id, sizeof(rule->table_id));
	get_text(tuple, desc, 8, rule->pk_type, sizeof(rule->pk_type));
	rule->limit = get_int32(tuple, desc, 9, 1);
	rule->single_scope = DatumGetBool(SPI_getbinval(tuple, desc, 10, &isnull));
	get_text(tuple, desc, 11, rule->twin_hash, sizeof(rule->twin_hash));
	SPI_finish();
	syn_act_back(&caller);
}

static const char membership_again_query[] =
"SELECT FROM synchro.registration WHERE (generation > $1 OR generation IN (SELECT generation FROM synchro.backfill WHERE state = 'rejected')) AND rel_no = $2 AND $3 = 0 AND membership_function = $4 AND membership_hash = $5";

static const char impact_again_query[] =
"SELECT FROM synchro.membership_dependency "
"WHERE (generation > $1 OR generation IN (SELECT generation FROM synchro.backfill WHERE state = 'rejected')) AND target_rel_no = $2 AND source_rel_no = $3 AND impact_function = $4 AND impact_hash = $5";

/*
 * Was the function's present definition registered for the same purpose after this generation, or in one that was rejected, which others
 * may have overtaken? Functions are looked up in the state of
 * now, which may be newer than the caller's snapshot, and so is the registration.
 */
static bool
registered_again(Rule *rule, const char *hash)
{
	Oid			types[] = {INT8OID, INT4OID, INT4OID, OIDOID, TEXTOID};
	Datum		values[] = {Int64GetDatum(rule->key.generation), Int32GetDatum(rule->key.target), Int32GetDatum(rule->key.source),
	ObjectIdGetDatum(rule->function), CStringGetTextDatum(hash)};
	SynActor	caller;
	bool		found;

	syn_act_as(&caller, syn_owner());
	PushActiveSnapshot(GetLatestSnapshot());
	SPI_connect();
	if (SPI_execute_with_args(rule_is_impact(rule) ? impact_again_query : membership_again_query, lengthof(types), types, values, NULL,
							  true, 1) != SPI_OK_SELECT)
		elog(ERROR, "could not read the registry");
	found = SPI_processed > 0;
	SPI_finish();
	PopActiveSnapshot();
	syn_act_back(&caller);
	return found;
}

/*
 * The function was replaced deliberately, for a rule that is not active yet. The copy has the registered body, and stands in until then;
 * its own hash says that nobody has changed it.
 */
static bool
twin_stands_in(Rule *rule, const char *hash)
{
	char	   *twin_hash;

	if (!OidIsValid(rule->twin) || rule->twin_hash[0] == '\0' || !registered_again(rule, hash))
		return false;
	twin_hash = syn_definition_hash(rule->twin);
	return twin_hash != NULL && strcmp(twin_hash, rule->twin_hash) == 0;
}

static void
verify(Rule *rule)
{
	const char *kind = rule_is_impact(rule) ? "impact" : "membership";
	uint64		now = syn_function_epoch();
	char	   *hash;

	if (rule->verified_at == now)
		return;
	hash = syn_definition_hash(rule->function);
	if (hash == NULL)
		syn_evaluation_failed(SYNCHRO_ERR_EVALUATION_FAILED, psprintf("the %s function does not exist any more", kind));
	rule->replaced = strcmp(hash, rule->hash) != 0;
	if (rule->replaced && !twin_stands_in(rule, hash))
		syn_evaluation_failed(SYNCHRO_ERR_EVALUATION_FAILED, psprintf("the %s function is not the registered one", kind));
	if (!rule->replaced && OidIsValid(rule->twin) && !syn_twin_matches(rule->twin, rule->function))
		syn_evaluation_failed(SYNCHRO_ERR_EVALUATION_FAILED, psprintf("the copy of the %s function was changed", kind));
	pfree(hash);
	if (rule->call_plan)
		SPI_freeplan(rule->call_plan);	/* of the function, or of the twin */
	rule->call_plan = NULL;
	rule->owner = syn_function_owner(rule->replaced ? rule->twin : rule->function);
	rule->verified_at = now;
}

Rule *
rule_get(int64 generation, int32 target, int32 source)
{
	RuleKey		key = {generation, target, source};
	Rule	   *rule;
	bool		found;

	open_cache();
	rule = hash_search(cache, &key, HASH_FIND, NULL);
	if (rule == NULL)
	{
		Rule		loaded = {.key = key};
		bool		ours;

		load(&loaded, &ours);
		if (ours)
			rule = MemoryContextAlloc(TopTransactionContext, sizeof(Rule));
		else
			rule = hash_search(cache, &key, HASH_ENTER, &found);
		*rule = loaded;
	}
	verify(rule);
	return rule;
}
