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
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/pg_lsn.h"
#include "utils/snapmgr.h"

#include "compat.h"
#include "digest_cache.h"
#include "lookup.h"
#include "scope_digest.h"
#include "scopelock.h"

PG_FUNCTION_INFO_V1(synchro_cached_digest);
PG_FUNCTION_INFO_V1(synchro_cached_digests);

static const char store_statement[] =
"INSERT INTO synchro.scope_digest_cache AS c (scope_no, schema_version, high_lsn, digest, cardinality)"
" SELECT u.scope_no, $1, u.high_lsn, u.digest, u.cardinality"
" FROM ROWS FROM (pg_catalog.unnest($2), pg_catalog.unnest($3), pg_catalog.unnest($4), pg_catalog.unnest($5))"
" u (scope_no, high_lsn, digest, cardinality)"
" ON CONFLICT (scope_no, schema_version) DO UPDATE"
" SET high_lsn = EXCLUDED.high_lsn, digest = EXCLUDED.digest, cardinality = EXCLUDED.cardinality"
" WHERE c.high_lsn OPERATOR(pg_catalog.<) EXCLUDED.high_lsn";

/* Answers what is stored; returns how many digests are missing. */
static int
find_stored(int64 schema_version, SynDigest *digests, int n)
{
	SynLookup	row;
	int			missing = 0;

	PushActiveSnapshot(GetLatestSnapshot());
	syn_lookup_open(&row, "scope_digest_cache", "scope_digest_cache_pkey");
	for (int i = 0; i < n; i++)
	{
		SynDigest  *d = &digests[i];

		if (d->digest != NULL)
			continue;
		syn_lookup_int8(&row, d->scope_no);
		syn_lookup_int8(&row, schema_version);
		syn_lookup_begin(&row);
		if (syn_lookup_next(&row) && DatumGetLSN(syn_lookup_value(&row, "high_lsn")) == d->high)
		{
			d->digest = TextDatumGetCString(syn_lookup_value(&row, "digest"));
			d->cardinality = DatumGetInt64(syn_lookup_value(&row, "cardinality"));
		}
		else
			missing++;
	}
	syn_lookup_close(&row);
	PopActiveSnapshot();
	return missing;
}

static Datum
array_of(Datum *values, int n, Oid type)
{
	bool		text = type == TEXTOID;

	return PointerGetDatum(construct_array(values, n, type, text ? -1 : sizeof(int64), text ? false : FLOAT8PASSBYVAL,
										   text ? TYPALIGN_INT : TYPALIGN_DOUBLE));
}

/* Stores the computed ones. */
static void
store(int64 schema_version, SynDigest **computed, int n)
{
	static SPIPlanPtr plan;		/* kept for the session */
	Datum	   *columns[4];
	Datum		values[5];

	for (int c = 0; c < 4; c++)
		columns[c] = palloc(n * sizeof(Datum));
	for (int i = 0; i < n; i++)
	{
		columns[0][i] = Int64GetDatum(computed[i]->scope_no);
		columns[1][i] = LSNGetDatum(computed[i]->high);
		columns[2][i] = CStringGetTextDatum(computed[i]->digest);
		columns[3][i] = Int64GetDatum(computed[i]->cardinality);
	}
	values[0] = Int64GetDatum(schema_version);
	values[1] = array_of(columns[0], n, INT8OID);
	values[2] = array_of(columns[1], n, LSNOID);
	values[3] = array_of(columns[2], n, TEXTOID);
	values[4] = array_of(columns[3], n, INT8OID);
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	if (plan == NULL)
	{
		Oid			types[5] = {INT8OID, INT8ARRAYOID, PG_LSNARRAYOID, TEXTARRAYOID, INT8ARRAYOID};
		SPIPlanPtr	made = SPI_prepare(store_statement, 5, types);

		if (made == NULL || SPI_keepplan(made) != 0)
			elog(ERROR, "could not prepare a statement of the digest cache");
		plan = made;
	}
	if (SPI_execute_snapshot(plan, values, NULL, GetLatestSnapshot(), InvalidSnapshot, false, true, 0) != SPI_OK_INSERT)
		elog(ERROR, "a statement of the digest cache failed");
	SPI_finish();
}

void
syn_cached_digests(int64 schema_version, SynDigest *digests, int n)
{
	SynDigest **computed;
	SynDigester *digester;
	int			ncomputed = 0;

	if (find_stored(schema_version, digests, n) == 0)
		return;
	/* One session at a time computes digests of a scope; the lock goes with the transaction: then the others can see the row. */
	for (int i = 0; i < n; i++)
		if (digests[i].digest == NULL)
			(void) syn_lock_scope(SYN_LOCK_DIGEST, (uint32) digests[i].scope_no, true);
	if (find_stored(schema_version, digests, n) == 0)
		return;
	computed = palloc(n * sizeof(SynDigest *));
	digester = syn_digester(schema_version);
	for (int i = 0; i < n; i++)
		if (digests[i].digest == NULL)
		{
			syn_digest(digester, &digests[i]);
			computed[ncomputed++] = &digests[i];
		}
	store(schema_version, computed, ncomputed);
}

/*
 * _cached_digest(scope_no bigint, schema_version bigint, scope_id text, high_lsn pg_lsn, OUT digest text, OUT cardinality bigint):
 * the digest under the transaction's snapshot, in which the scope has that high_lsn.
 */
Datum
synchro_cached_digest(PG_FUNCTION_ARGS)
{
	SynDigest	d = {.scope_no = PG_GETARG_INT64(0), .scope_id = PG_GETARG_TEXT_PP(2), .high = PG_GETARG_LSN(3)};
	TupleDesc	desc;
	Datum		result[2];
	bool		nulls[2] = {false, false};

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "_cached_digest is declared wrongly");
	syn_cached_digests(PG_GETARG_INT64(1), &d, 1);
	result[0] = CStringGetTextDatum(d.digest);
	result[1] = Int64GetDatum(d.cardinality);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), result, nulls)));
}

/* _cached_digests(schema_version bigint, scope_nos bigint[], scope_ids text[], high_lsns pg_lsn[]) text[]: several at once. */
Datum
synchro_cached_digests(PG_FUNCTION_ARGS)
{
	Datum	   *columns[3];
	int			counts[3];
	Oid			types[3] = {INT8OID, TEXTOID, LSNOID};
	SynDigest  *digests;
	Datum	   *result;
	int			n;

	for (int c = 0; c < 3; c++)
		deconstruct_array(PG_GETARG_ARRAYTYPE_P(c + 1), types[c], c == 1 ? -1 : sizeof(int64), c == 1 ? false : FLOAT8PASSBYVAL,
						  c == 1 ? TYPALIGN_INT : TYPALIGN_DOUBLE, &columns[c], NULL, &counts[c]);
	n = counts[0];
	if (counts[1] != n || counts[2] != n)
		elog(ERROR, "arrays of different lengths");
	digests = palloc0(Max(n, 1) * sizeof(SynDigest));
	for (int i = 0; i < n; i++)
	{
		digests[i].scope_no = DatumGetInt64(columns[0][i]);
		digests[i].scope_id = DatumGetTextPP(columns[1][i]);
		digests[i].high = DatumGetLSN(columns[2][i]);
	}
	syn_cached_digests(PG_GETARG_INT64(0), digests, n);
	result = palloc(Max(n, 1) * sizeof(Datum));
	for (int i = 0; i < n; i++)
		result[i] = CStringGetTextDatum(digests[i].digest);
	PG_RETURN_DATUM(array_of(result, n, TEXTOID));
}
