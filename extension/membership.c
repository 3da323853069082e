/*
 * membership.c
 *		Configuration of membership evaluation. A generation is immutable, so it is read once per session; that its functions are still
 *		those which were registered is verified again whenever any function may have changed.
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

#include "actas.h"
#include "errcodes.h"
#include "membership.h"
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
forget(Membership *m)
{
	if (m->set_plan)
		SPI_freeplan(m->set_plan);
	if (m->sorted_plan)
		SPI_freeplan(m->sorted_plan);
	if (m->call_plan)
		SPI_freeplan(m->call_plan);
	hash_search(cache, &m->key, HASH_REMOVE, NULL);
}

static void
open_cache(void)
{
	HASH_SEQ_STATUS all;
	Membership *m;

	if (cache == NULL)
	{
		HASHCTL		ctl = {.keysize = sizeof(MembershipKey), .entrysize = sizeof(Membership), .hcxt = TopMemoryContext};

		CacheRegisterRelcacheCallback(registration_changed, (Datum) 0);
		cache = hash_create("synchro membership", 32, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	registration_table = get_relname_relid("registration", get_namespace_oid("synchro", false));
	if (!cache_stale)
		return;
	hash_seq_init(&all, cache);
	while ((m = hash_seq_search(&all)) != NULL)
		forget(m);
	cache_stale = false;
}

/* Reads the registry; *ours: this transaction wrote the row, and may still change it or roll it back. */
static void
load(Membership *m, bool *ours)
{
	Oid			types[] = {INT8OID, INT8OID};
	Datum		values[] = {Int64GetDatum(m->key.generation), Int64GetDatum(m->key.rel_no)};
	SynActor	caller;
	HeapTuple	tuple;
	TupleDesc	desc;
	bool		isnull;

	syn_act_as(&caller, syn_owner());
	SPI_connect();
	if (SPI_execute_with_args("SELECT membership_function, membership_twin, key_type, membership_hash, composition, max_scope_fanout, xmin "
							  "FROM synchro.registration WHERE generation = $1 AND rel_no = $2 AND kind = 'synced'",
							  lengthof(types), types, values, NULL, true, 1) != SPI_OK_SELECT)
		elog(ERROR, "could not read the registry");
	if (SPI_processed == 0)
		ereport(ERROR, (errcode(SYNCHRO_ERR_INVALID_PARAMETER), errmsg("the relation is not synced in that generation")));
	tuple = SPI_tuptable->vals[0];
	desc = SPI_tuptable->tupdesc;
	m->function = DatumGetObjectId(SPI_getbinval(tuple, desc, 1, &isnull));
	m->twin = DatumGetObjectId(SPI_getbinval(tuple, desc, 2, &isnull));
	if (isnull)
		m->twin = InvalidOid;
	m->key_type = DatumGetObjectId(SPI_getbinval(tuple, desc, 3, &isnull));
	strlcpy(m->hash, SPI_getvalue(tuple, desc, 4), sizeof(m->hash));
	m->single_scope = strcmp(SPI_getvalue(tuple, desc, 5), "single_scope") == 0;
	m->max_fanout = DatumGetInt32(SPI_getbinval(tuple, desc, 6, &isnull));
	*ours = TransactionIdIsCurrentTransactionId(DatumGetTransactionId(SPI_getbinval(tuple, desc, 7, &isnull)));
	SPI_finish();
	syn_act_back(&caller);
}

static void
verify(Membership *m)
{
	uint64		now = syn_function_epoch();
	char	   *hash;

	if (m->verified_at == now)
		return;
	hash = syn_definition_hash(m->function);
	if (hash == NULL)
		syn_evaluation_failed(SYNCHRO_ERR_EVALUATION_FAILED, "the membership function does not exist any more");
	if (strcmp(hash, m->hash) != 0)
		syn_evaluation_failed(SYNCHRO_ERR_EVALUATION_FAILED, "the membership function is not the registered one");
	if (OidIsValid(m->twin) && !syn_twin_matches(m->twin, m->function))
		syn_evaluation_failed(SYNCHRO_ERR_EVALUATION_FAILED, "the copy of the membership function was changed");
	pfree(hash);
	m->owner = syn_function_owner(m->function);
	m->verified_at = now;
}

Membership *
membership_get(int rel_no, int64 generation)
{
	MembershipKey key = {generation, rel_no};
	Membership *m;
	bool		found;

	open_cache();
	m = hash_search(cache, &key, HASH_FIND, NULL);
	if (m == NULL)
	{
		Membership	loaded = {.key = key};
		bool		ours;

		load(&loaded, &ours);
		if (ours)
			m = MemoryContextAlloc(TopTransactionContext, sizeof(Membership));
		else
			m = hash_search(cache, &key, HASH_ENTER, &found);
		*m = loaded;
	}
	verify(m);
	return m;
}
