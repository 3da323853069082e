/*
 * canonical_entries.c
 *		Entries of a scope whose digests are of the manifest asked for, read by index, without a plan.
 */
#include "postgres.h"

#include "compat.h"

#include "miscadmin.h"
#include "utils/fmgroids.h"
#include "utils/pg_lsn.h"

#include "canonical_scope.h"
#include "lookup.h"

/* More changes than these are not gathered. */
#define CHANGES_MAX 10000

typedef struct Entries
{
	SynLookup	lookup;
	const SynManifestParts *manifest;
	int			rel_no;			/* column numbers */
	int			state;
	int			schema;
	int			key;
	int			digest;
} Entries;

static void
open_entries(Entries *e, const SynManifestParts *manifest, const char *index)
{
	syn_lookup_open(&e->lookup, "scope_entry", index);
	e->manifest = manifest;
	e->rel_no = syn_lookup_column(&e->lookup, "rel_no");
	e->state = syn_lookup_column(&e->lookup, "state");
	e->schema = syn_lookup_column(&e->lookup, "digest_schema");
	e->key = syn_lookup_column(&e->lookup, "key");
	e->digest = syn_lookup_column(&e->lookup, "row_digest");
}

static bool
is_live(const Entries *e)
{
	bool		isnull;

	return DatumGetChar(slot_getattr(e->lookup.slot, e->state, &isnull)) == 'l';
}

static bool
is_current(const Entries *e)
{
	bool		isnull;

	return DatumGetInt64(slot_getattr(e->lookup.slot, e->schema, &isnull)) == e->manifest->schema_version;
}

static struct varlena *
entry_key(const Entries *e)
{
	bool		isnull;

	return PG_DETOAST_DATUM_PACKED(slot_getattr(e->lookup.slot, e->key, &isnull));
}

/* Long keys are stored compressed: what reads a whole scope must not gather them. */
static void
free_key(const Entries *e, struct varlena *key)
{
	bool		isnull;

	if (PointerGetDatum(key) != slot_getattr(e->lookup.slot, e->key, &isnull))
		pfree(key);
}

static const char *
entry_digest(const Entries *e)
{
	bool		isnull;
	Datum		value = slot_getattr(e->lookup.slot, e->digest, &isnull);
	bytea	   *digest;

	if (isnull)
		syn_entry_damaged("no digest");
	digest = DatumGetByteaPP(value);
	if (VARSIZE_ANY_EXHDR(digest) != SYN_HASH_LEN)
		syn_entry_damaged("a malformed digest");
	return VARDATA_ANY(digest);
}

/* The live entries of one relation. */
static bool
read_part(Entries *e, int64 scope_no, int part, SynScopeRows *rows, SynScopeHash *hash)
{
	syn_lookup_int8(&e->lookup, scope_no);
	syn_lookup_int4(&e->lookup, e->manifest->parts[part].rel_no);
	syn_lookup_begin(&e->lookup);
	while (syn_lookup_next(&e->lookup))
	{
		struct varlena *key;

		CHECK_FOR_INTERRUPTS();
		if (!is_live(e))
			continue;
		if (!is_current(e))
			return false;
		key = entry_key(e);
		if (hash)
			syn_scope_hash_row(hash, e->manifest->parts[part].rel, VARDATA_ANY(key), VARSIZE_ANY_EXHDR(key), entry_digest(e));
		syn_rows_add(rows, part, VARDATA_ANY(key), VARSIZE_ANY_EXHDR(key), entry_digest(e));
		free_key(e, key);
	}
	return true;
}

bool
syn_scope_entries(int64 scope_no, const SynManifestParts *manifest, SynScopeRows *rows, SynScopeHash *hash)
{
	Entries		e;
	bool		current = true;

	syn_rows_reset(rows, 0);
	open_entries(&e, manifest, "scope_entry_pkey");
	for (int i = 0; i < manifest->n && current; i++)
		current = read_part(&e, scope_no, i, rows, hash);
	syn_lookup_close(&e.lookup);
	return current;
}

/* The change of a row that an entry says. */
static void
read_change(const Entries *e, int part, SynRowChange *change)
{
	struct varlena *key = entry_key(e);

	change->part = part;
	change->keylen = VARSIZE_ANY_EXHDR(key);
	change->key = memcpy(palloc(Max(change->keylen, 1)), VARDATA_ANY(key), change->keylen);
	change->live = is_live(e);
	if (change->live)
		memcpy(change->digest, entry_digest(e), SYN_HASH_LEN);
	free_key(e, key);
}

typedef struct Changes
{
	SynRowChange *list;
	int			n;
	int			room;
} Changes;

/* The changes of one index of positions. False: they are too many, or a digest is one of another manifest. */
static bool
read_changes(const char *index, int64 scope_no, const SynManifestParts *manifest, XLogRecPtr after, Changes *changes)
{
	Entries		e;
	bool		usable = true;

	open_entries(&e, manifest, index);
	syn_lookup_int8(&e.lookup, scope_no);
	syn_lookup_key(&e.lookup, BTGreaterStrategyNumber, F_PG_LSN_GT, LSNGetDatum(after));
	syn_lookup_begin(&e.lookup);
	while (usable && syn_lookup_next(&e.lookup))
	{
		bool		isnull;
		int			part = syn_manifest_part(manifest, DatumGetInt32(slot_getattr(e.lookup.slot, e.rel_no, &isnull)));

		CHECK_FOR_INTERRUPTS();
		if (part < 0)
			continue;
		usable = changes->n < CHANGES_MAX && (!is_live(&e) || is_current(&e));
		if (!usable)
			break;
		if (changes->n == changes->room)
			changes->list = repalloc(changes->list, (changes->room *= 2) * sizeof(SynRowChange));
		read_change(&e, part, &changes->list[changes->n++]);
	}
	syn_lookup_close(&e.lookup);
	return usable;
}

int
syn_scope_changes(int64 scope_no, const SynManifestParts *manifest, XLogRecPtr after, SynRowChange **changes)
{
	Changes		found = {.list = palloc(64 * sizeof(SynRowChange)), .room = 64};
	bool		usable = read_changes("scope_entry_position", scope_no, manifest, after, &found) &&
		read_changes("scope_entry_left", scope_no, manifest, after, &found);

	*changes = found.list;
	return usable ? found.n : -1;
}
