/*
 * digest_cache.c
 *		Scope digests, computed once for all sessions that wait for the same one.
 *
 * A digest is a function of (scope, manifest, high_lsn), so it is kept in synchro.scope_digest_cache. Pulls run in REPEATABLE
 * READ, where one session would neither see what another has just stored nor be allowed to write over it. The value stored is
 * the same under every snapshot that has its high_lsn, so the cache alone is read and written under the latest snapshot.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/pg_lsn.h"
#include "utils/snapmgr.h"

#include "scopelock.h"

PG_FUNCTION_INFO_V1(synchro_cached_digest);

typedef struct Statement
{
	const char *text;
	int			nargs;
	Oid			types[5];
	SPIPlanPtr	plan;			/* kept for the session */
} Statement;

static Statement find_digest = {
	"SELECT c.digest, c.cardinality FROM synchro.scope_digest_cache c"
	" WHERE c.scope_no OPERATOR(pg_catalog.=) $1 AND c.schema_version OPERATOR(pg_catalog.=) $2"
	" AND c.high_lsn OPERATOR(pg_catalog.=) $3",
	3, {INT8OID, INT8OID, LSNOID}
};

static Statement compute_digest = {
	"SELECT d.digest, d.cardinality FROM synchro._scope_digest($1, $2, $3) d",
	3, {INT8OID, INT8OID, TEXTOID}
};

static Statement store_digest = {
	"INSERT INTO synchro.scope_digest_cache AS c (scope_no, schema_version, high_lsn, digest, cardinality)"
	" VALUES ($1, $2, $3, $4, $5) ON CONFLICT (scope_no, schema_version) DO UPDATE"
	" SET high_lsn = EXCLUDED.high_lsn, digest = EXCLUDED.digest, cardinality = EXCLUDED.cardinality"
	" WHERE c.high_lsn OPERATOR(pg_catalog.<) EXCLUDED.high_lsn",
	5, {INT8OID, INT8OID, LSNOID, TEXTOID, INT8OID}
};

/* Runs a statement; the snapshot InvalidSnapshot means the transaction's own. */
static void
run(Statement *s, Datum *values, Snapshot snapshot, bool read_only, int expected)
{
	int			rc;

	if (s->plan == NULL)
	{
		SPIPlanPtr	plan = SPI_prepare(s->text, s->nargs, s->types);

		if (plan == NULL || SPI_keepplan(plan) != 0)
			elog(ERROR, "could not prepare a statement of the digest cache");
		s->plan = plan;
	}
	rc = SPI_execute_snapshot(s->plan, values, NULL, snapshot, InvalidSnapshot, read_only, true, 0);
	if (rc != expected)
		elog(ERROR, "a statement of the digest cache failed: %s", SPI_result_code_string(rc));
}

/* Takes the result row of a query, if there is one, into the caller's memory. */
static bool
fetch(MemoryContext caller, Datum *digest, int64 *cardinality)
{
	bool		isnull;
	MemoryContext old;

	if (SPI_processed != 1)
		return false;
	old = MemoryContextSwitchTo(caller);
	*digest = CStringGetTextDatum(SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1));
	MemoryContextSwitchTo(old);
	*cardinality = DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 2, &isnull));
	return true;
}

/*
 * _cached_digest(scope_no bigint, schema_version bigint, scope_id text, high_lsn pg_lsn, OUT digest text, OUT cardinality bigint):
 * the digest under the transaction's snapshot, in which the scope has that high_lsn. Callers with several scopes ask for them in
 * the order of their ids, or two of them could wait for each other.
 */
Datum
synchro_cached_digest(PG_FUNCTION_ARGS)
{
	Datum		scope_no = PG_GETARG_DATUM(0);
	Datum		schema_version = PG_GETARG_DATUM(1);
	Datum		scope_id = PG_GETARG_DATUM(2);
	Datum		high_lsn = PG_GETARG_DATUM(3);
	MemoryContext caller = CurrentMemoryContext;
	TupleDesc	desc;
	Datum		digest;
	int64		cardinality;
	Snapshot	latest;
	Datum		result[2];
	bool		nulls[2] = {false, false};

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "_cached_digest is declared wrongly");
	desc = BlessTupleDesc(desc);
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");

	/* one session at a time computes digests of a scope; the lock goes with the transaction: then the others can see the row */
	(void) syn_lock_scope(SYN_LOCK_DIGEST, (uint32) DatumGetInt64(scope_no), true);
	latest = RegisterSnapshot(GetLatestSnapshot());
	run(&find_digest, (Datum[]) {scope_no, schema_version, high_lsn}, latest, true, SPI_OK_SELECT);
	if (!fetch(caller, &digest, &cardinality))
	{
		run(&compute_digest, (Datum[]) {scope_no, schema_version, scope_id}, InvalidSnapshot, true, SPI_OK_SELECT);
		if (!fetch(caller, &digest, &cardinality))
			elog(ERROR, "a scope has no digest");
		run(&store_digest, (Datum[]) {scope_no, schema_version, high_lsn, digest, Int64GetDatum(cardinality)},
			latest, false, SPI_OK_INSERT);
	}
	UnregisterSnapshot(latest);
	SPI_finish();

	result[0] = digest;
	result[1] = Int64GetDatum(cardinality);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(desc, result, nulls)));
}
