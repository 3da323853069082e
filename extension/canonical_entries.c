/*
 * canonical_entries.c
 *		Digest of a scope whose entries all have digests of the manifest asked for.
 *
 * Entries are read by the index that orders them, without a plan. The count of the entries comes first in the hash, so what is hashed
 * is gathered and hashed at the end as long as it is little; else there are two passes under one snapshot, one that counts and one
 * that hashes, and memory does not grow with the scope.
 */
#include "postgres.h"

#include "compat.h"

#include "miscadmin.h"
#include "port/pg_bswap.h"

#include "canonical_scope.h"
#include "lookup.h"

#define GATHERED_MAX (4 * 1024 * 1024)

/* A relation of the manifest. */
typedef struct Part
{
	int			rel_no;
	const SynRelation *rel;
} Part;

typedef struct Entries
{
	SynLookup	lookup;
	int64		scope_no;
	int64		schema_version;
	int			state;			/* column numbers */
	int			schema;
	int			key;
	int			digest;
} Entries;

static void
open_entries(Entries *e, int64 scope_no, int64 schema_version)
{
	syn_lookup_open(&e->lookup, "scope_entry", "scope_entry_pkey");
	e->scope_no = scope_no;
	e->schema_version = schema_version;
	e->state = syn_lookup_column(&e->lookup, "state");
	e->schema = syn_lookup_column(&e->lookup, "digest_schema");
	e->key = syn_lookup_column(&e->lookup, "key");
	e->digest = syn_lookup_column(&e->lookup, "row_digest");
}

/* Appends blob(row_identity) and the digest of the current entry. */
static void
append_entry(const Entries *e, const SynRelation *rel, StringInfo buf)
{
	TupleTableSlot *slot = e->lookup.slot;
	bool		isnull;
	struct varlena *value = (struct varlena *) DatumGetPointer(slot_getattr(slot, e->key, &isnull));
	struct varlena *stored = PG_DETOAST_DATUM_PACKED(PointerGetDatum(value));
	bytea	   *digest;
	SynValue	key;
	int			start = buf->len;
	uint64		len;

	if (!syn_key_from_bytes(rel->fields[rel->key].type, VARDATA_ANY(stored), VARSIZE_ANY_EXHDR(stored), &key))
		syn_entry_damaged("a malformed key");
	syn_append_u64(buf, 0);
	syn_append_identity(buf, rel, &key);
	len = pg_hton64((uint64) (buf->len - start) - sizeof(len));
	memcpy(buf->data + start, &len, sizeof(len));
	if (stored != value)
		pfree(stored);

	digest = (bytea *) DatumGetPointer(slot_getattr(slot, e->digest, &isnull));
	if (isnull)
		syn_entry_damaged("no digest");
	digest = DatumGetByteaPP(PointerGetDatum(digest));
	if (VARSIZE_ANY_EXHDR(digest) != SYN_HASH_LEN)
		syn_entry_damaged("a malformed digest");
	appendBinaryStringInfo(buf, VARDATA_ANY(digest), SYN_HASH_LEN);
}

/*
 * Counts the live entries of a relation, and gives them to the hash, or to the buffer as long as there is not too much in it.
 * False: one of them has a digest of another manifest.
 */
static bool
read_entries(Entries *e, const Part *part, SynScopeHash *hash, StringInfo gathered, uint64 *count)
{
	bool		isnull;

	syn_lookup_int8(&e->lookup, e->scope_no);
	syn_lookup_int4(&e->lookup, part->rel_no);
	syn_lookup_begin(&e->lookup);
	while (syn_lookup_next(&e->lookup))
	{
		CHECK_FOR_INTERRUPTS();
		if (DatumGetChar(slot_getattr(e->lookup.slot, e->state, &isnull)) != 'l')
			continue;
		if (DatumGetInt64(slot_getattr(e->lookup.slot, e->schema, &isnull)) != e->schema_version)
			return false;
		(*count)++;
		if (hash)
			append_entry(e, part->rel, syn_scope_hash_entry(hash));
		else if (gathered->len <= GATHERED_MAX)
			append_entry(e, part->rel, gathered);
	}
	return true;
}

static int
compare_parts(const void *a, const void *b)
{
	const SynRelation *x = ((const Part *) a)->rel;
	const SynRelation *y = ((const Part *) b)->rel;

	return memcmp(x->identity.data, y->identity.data, Min(x->identity.len, y->identity.len));
}

/* The relations of the manifest, in identity order. */
static Part *
manifest_parts(int64 schema_version, int *nparts)
{
	SynLookup	field;
	Part	   *parts = palloc(sizeof(Part));

	*nparts = 0;
	syn_lookup_open(&field, "manifest_field", "manifest_field_pkey");
	syn_lookup_int8(&field, schema_version);
	syn_lookup_begin(&field);
	while (syn_lookup_next(&field))
	{
		Part	   *part;

		if (!DatumGetBool(syn_lookup_value(&field, "is_key")))
			continue;
		parts = repalloc(parts, (*nparts + 1) * sizeof(Part));
		part = &parts[(*nparts)++];
		memset(part, 0, sizeof(*part));
		part->rel_no = DatumGetInt32(syn_lookup_value(&field, "rel_no"));
	}
	syn_lookup_close(&field);
	for (int i = 0; i < *nparts; i++)
		parts[i].rel = syn_relation(parts[i].rel_no, schema_version);
	qsort(parts, *nparts, sizeof(Part), compare_parts);
	return parts;
}

char *
syn_current_digest(int64 scope_no, int64 schema_version, const uint8 *schema_hash, const text *scope_id, uint64 *cardinality)
{
	const char *id = VARDATA_ANY(scope_id);
	int			idlen = VARSIZE_ANY_EXHDR(scope_id);
	Entries		entries;
	SynScopeHash hash;
	StringInfoData gathered;
	int			nparts;
	Part	   *parts = manifest_parts(schema_version, &nparts);
	bool		current = true;
	char	   *digest = NULL;

	*cardinality = 0;
	initStringInfo(&gathered);
	open_entries(&entries, scope_no, schema_version);
	for (int i = 0; i < nparts && current; i++)
		current = read_entries(&entries, &parts[i], NULL, &gathered, cardinality);
	if (current)
	{
		syn_scope_hash_begin(&hash, schema_hash, id, idlen, *cardinality);
		if (gathered.len <= GATHERED_MAX)
			syn_scope_hash_entries(&hash, gathered.data, gathered.len, *cardinality);
		else
		{
			uint64		again = 0;

			for (int i = 0; i < nparts; i++)
				(void) read_entries(&entries, &parts[i], &hash, NULL, &again);
		}
		digest = syn_scope_hash_end(&hash);
	}
	syn_lookup_close(&entries.lookup);
	pfree(gathered.data);
	return digest;
}
