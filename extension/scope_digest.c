/*
 * scope_digest.c
 *		Digests of scopes under the transaction's snapshot, from the rows that are kept of them or from their entries.
 *
 * Kept rows are brought up to date as a client's copy is: they are good under the conditions that make a cursor at the end of their last
 * effect's transaction good (the same generations, not below the resume floor, not ahead of the snapshot), and then the effects
 * above say all that has changed. Where any condition fails, the entries are read. What this transaction itself has
 * written is nobody else's: while the scope's row is its own, nothing is kept and nothing that was kept is used.
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/pg_lsn.h"

#include "canonical_scope.h"
#include "compat.h"
#include "errcodes.h"
#include "guc.h"
#include "kept.h"
#include "lookup.h"
#include "scope_digest.h"

/* The memory of one session for one scope at a time is bounded, too. */
#define ROWS_MAX ((Size) 64 * 1024 * 1024)

struct SynDigester
{
	SynManifestParts *manifest;
	int64		stream;
	SynScopeRows before;
	SynScopeRows rows;
};

static int64
stream_generation(void)
{
	SynLookup	row;
	int64		stream;

	syn_lookup_open(&row, "progress", "progress_pkey");
	syn_lookup_begin(&row);
	stream = syn_lookup_next(&row) ? DatumGetInt64(syn_lookup_value(&row, "stream_generation")) : 0;
	syn_lookup_close(&row);
	return stream;
}

SynDigester *
syn_digester(int64 schema_version)
{
	SynDigester *digester = palloc(sizeof(SynDigester));

	digester->manifest = syn_manifest_parts(schema_version);
	if (digester->manifest == NULL)
		elog(ERROR, "a manifest is missing");
	digester->stream = stream_generation();
	syn_rows_init(&digester->before, ROWS_MAX);
	syn_rows_init(&digester->rows, Max(SYN_ROWS_GATHERED, Min(ROWS_MAX, syn_kept_limit())));
	return digester;
}

/* The state of the scope in the snapshot; false: it must not have to do with what is kept. */
static bool
read_state(const SynDigester *digester, const SynDigest *d, SynKeptState *state, XLogRecPtr *floor)
{
	SynLookup	row;
	bool		good;

	syn_lookup_open(&row, "scope", "scope_pkey");
	syn_lookup_int8(&row, d->scope_no);
	syn_lookup_begin(&row);
	good = syn_lookup_next(&row);
	if (good)
	{
		bool		isnull;
		TransactionId writer = DatumGetTransactionId(slot_getsysattr(row.slot, MinTransactionIdAttributeNumber, &isnull));
		Datum		lsn = syn_lookup_get(&row, "floor_lsn", &isnull);

		*floor = isnull ? InvalidXLogRecPtr : DatumGetLSN(lsn);
		state->stream = digester->stream;
		state->membership = DatumGetInt64(syn_lookup_value(&row, "membership_generation"));
		state->retention = DatumGetInt64(syn_lookup_value(&row, "retention_generation"));
		state->high = DatumGetLSN(syn_lookup_value(&row, "high_lsn"));
		good = state->high == d->high && !TransactionIdIsCurrentTransactionId(writer);
	}
	syn_lookup_close(&row);
	return good;
}

/* Are the kept rows such that the effects above them say what has changed up to the state? */
static bool
is_usable(const SynKeptState *kept, const SynKeptState *state, XLogRecPtr floor)
{
	return kept->stream == state->stream && kept->membership == state->membership && kept->retention == state->retention &&
		kept->high <= state->high && kept->high >= floor;
}

/* Makes the rows at the state of those that are kept; false: they are of no use. */
static bool
rows_from_kept(SynDigester *digester, const SynDigest *d, const SynKeptKey *key, const SynKeptState *state, XLogRecPtr floor)
{
	SynKeptState kept;
	SynRowChange *changes = NULL;
	int			n = 0;

	if (!syn_kept_fetch(key, &kept, &digester->before) || !is_usable(&kept, state, floor))
		return false;
	if (kept.high < state->high)
		n = syn_scope_changes(d->scope_no, digester->manifest, kept.high, &changes);
	if (n < 0)
		return false;
	syn_rows_merge(&digester->before, changes, n, &digester->rows);
	return digester->rows.complete;
}

/* Compares what came of kept rows with what the entries say. */
static void
verify(SynDigester *digester, const SynDigest *d)
{
	uint64		cardinality;
	char	   *digest = syn_scope_digest(d->scope_no, digester->manifest, d->scope_id, &digester->before, &cardinality);

	if (cardinality != (uint64) d->cardinality || strcmp(digest, d->digest) != 0)
		ereport(ERROR,
				(errcode(SYNCHRO_ERR_SYNC_INTEGRITY_FAILURE),
				 errmsg("kept rows of a scope differ from its entries")));
}

void
syn_digest(SynDigester *digester, SynDigest *d)
{
	SynKeptKey	key = {.database = MyDatabaseId, .scope_no = d->scope_no};
	SynKeptState state;
	XLogRecPtr	floor;
	bool		keeps = read_state(digester, d, &state, &floor);
	uint64		cardinality;

	memcpy(key.schema_hash, digester->manifest->schema_hash, SYN_HASH_LEN);
	if (keeps && rows_from_kept(digester, d, &key, &state, floor))
	{
		d->digest = syn_rows_digest(&digester->rows, digester->manifest, d->scope_id);
		d->cardinality = (int64) digester->rows.count;
		if (synchro_verify_digests)
			verify(digester, d);
	}
	else
	{
		d->digest = syn_scope_digest(d->scope_no, digester->manifest, d->scope_id, &digester->rows, &cardinality);
		d->cardinality = (int64) cardinality;
	}
	if (keeps)
		syn_kept_store(&key, &state, &digester->rows);
}
