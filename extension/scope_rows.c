/*
 * scope_rows.c
 *		The live rows of a scope in identity order, as compactly as its digest can be computed from.
 *
 * Identity prefixes of two relations differ within their table ids, and the octets of keys order like identities within one relation.
 */
#include "postgres.h"

#include "canonical_scope.h"
#include "compat.h"
#include "lookup.h"
#include "scope_rows.h"

/* Octets of records from mark to mark. */
#define MARK_DISTANCE (4 * 1024)

typedef struct Record
{
	uint16		part;
	uint16		keylen;
	const char *key;			/* the digest follows */
} Record;

static int
compare_parts(const void *a, const void *b)
{
	const SynRelation *x = ((const struct SynPart *) a)->rel;
	const SynRelation *y = ((const struct SynPart *) b)->rel;

	return memcmp(x->identity.data, y->identity.data, Min(x->identity.len, y->identity.len));
}

static bool
read_hash(int64 schema_version, uint8 *hash)
{
	SynLookup	row;
	bool		found;

	syn_lookup_open(&row, "manifest", "manifest_pkey");
	syn_lookup_int8(&row, schema_version);
	syn_lookup_begin(&row);
	found = syn_lookup_next(&row);
	if (found)
	{
		text	   *hex = DatumGetTextPP(syn_lookup_value(&row, "schema_hash"));

		if (!syn_parse_hash(VARDATA_ANY(hex), VARSIZE_ANY_EXHDR(hex), hash))
			elog(ERROR, "malformed schema hash");
	}
	syn_lookup_close(&row);
	return found;
}

SynManifestParts *
syn_manifest_parts(int64 schema_version)
{
	SynManifestParts *manifest = palloc0(sizeof(SynManifestParts));
	SynLookup	field;

	manifest->schema_version = schema_version;
	if (!read_hash(schema_version, manifest->schema_hash))
		return NULL;
	manifest->parts = palloc(sizeof(struct SynPart));
	syn_lookup_open(&field, "manifest_field", "manifest_field_pkey");
	syn_lookup_int8(&field, schema_version);
	syn_lookup_begin(&field);
	while (syn_lookup_next(&field))
	{
		if (!DatumGetBool(syn_lookup_value(&field, "is_key")))
			continue;
		manifest->parts = repalloc(manifest->parts, (manifest->n + 1) * sizeof(struct SynPart));
		manifest->parts[manifest->n++].rel_no = DatumGetInt32(syn_lookup_value(&field, "rel_no"));
	}
	syn_lookup_close(&field);
	for (int i = 0; i < manifest->n; i++)
		manifest->parts[i].rel = syn_relation(manifest->parts[i].rel_no, schema_version);
	qsort(manifest->parts, manifest->n, sizeof(struct SynPart), compare_parts);
	return manifest;
}

int
syn_manifest_part(const SynManifestParts *manifest, int rel_no)
{
	for (int i = 0; i < manifest->n; i++)
		if (manifest->parts[i].rel_no == rel_no)
			return i;
	return -1;
}

void
syn_rows_init(SynScopeRows *rows, Size limit)
{
	initStringInfo(&rows->data);
	initStringInfo(&rows->marks);
	rows->limit = limit;
	rows->count = 0;
	rows->complete = true;
}

void
syn_rows_reset(SynScopeRows *rows, Size room)
{
	resetStringInfo(&rows->data);
	resetStringInfo(&rows->marks);
	enlargeStringInfo(&rows->data, room);
	rows->count = 0;
	rows->complete = true;
}

void
syn_rows_add(SynScopeRows *rows, int part, const char *key, int keylen, const void *digest)
{
	uint16		head[2] = {part, keylen};

	rows->count++;
	if (rows->data.len + sizeof(head) + keylen + SYN_HASH_LEN > rows->limit || keylen > PG_UINT16_MAX || part > PG_UINT16_MAX)
		rows->complete = false;
	if (!rows->complete)
		return;
	enlargeStringInfo(&rows->data, sizeof(head) + keylen + SYN_HASH_LEN);
	appendBinaryStringInfoNT(&rows->data, (char *) head, sizeof(head));
	appendBinaryStringInfoNT(&rows->data, key, keylen);
	appendBinaryStringInfoNT(&rows->data, digest, SYN_HASH_LEN);
}

/* Reads the record there and goes on to the next one; false: there is none. */
static bool
next_record(const SynScopeRows *rows, int *at, Record *record)
{
	const char *data = rows->data.data + *at;

	if (*at >= rows->data.len)
		return false;
	memcpy(&record->part, data, sizeof(uint16));
	memcpy(&record->keylen, data + sizeof(uint16), sizeof(uint16));
	record->key = data + 2 * sizeof(uint16);
	*at += 2 * sizeof(uint16) + record->keylen + SYN_HASH_LEN;
	return true;
}

static int
compare_rows(int part, const char *key, int keylen, int part2, const char *key2, int keylen2)
{
	int			diff;

	if (part != part2)
		return part - part2;
	diff = memcmp(key, key2, Min(keylen, keylen2));
	return diff != 0 ? diff : keylen - keylen2;
}

static int
compare_changes(const void *a, const void *b)
{
	const SynRowChange *x = a;
	const SynRowChange *y = b;

	return compare_rows(x->part, x->key, x->keylen, y->part, y->key, y->keylen);
}

/* Adds records of other rows as they stand there. */
static void
add_run(SynScopeRows *rows, const SynScopeRows *from, int at, int end, uint64 count)
{
	rows->count += count;
	if ((Size) rows->data.len + (end - at) > rows->limit)
		rows->complete = false;
	if (rows->complete)
		appendBinaryStringInfoNT(&rows->data, from->data.data + at, end - at);
}

/* The count comes first in the hash, and then row by row. */
static void
keep_marks(const SynScopeRows *before, int unchanged, SynScopeRows *after)
{
	int			len = 0;

	if (before->count != after->count)
		return;
	for (SynRowsMark mark; len < before->marks.len; len += sizeof(mark))
	{
		memcpy(&mark, before->marks.data + len, sizeof(mark));
		if (mark.at > unchanged)
			break;
	}
	appendBinaryStringInfo(&after->marks, before->marks.data, len);
}

void
syn_rows_merge(const SynScopeRows *before, SynRowChange *changes, int n, SynScopeRows *after)
{
	int			at = 0;
	uint64		left = before->count;
	int			unchanged = before->data.len;

	syn_rows_reset(after, Min(before->data.len + (Size) n * 64, after->limit));
	qsort(changes, n, sizeof(SynRowChange), compare_changes);
	for (int i = 0; i < n; i++)
	{
		const SynRowChange *c = &changes[i];
		Record		r;
		int			start = at;
		int			next = at;
		uint64		count = 0;
		int			diff = 1;

		/* Most rows stay, and they are many. */
		while (next_record(before, &next, &r) && (diff = compare_rows(r.part, r.key, r.keylen, c->part, c->key, c->keylen)) < 0)
		{
			at = next;
			count++;
		}
		add_run(after, before, start, at, count);
		left -= count;
		if (i == 0)
			unchanged = at;
		if (diff == 0)
		{
			at = next;
			left--;
		}
		if (c->live)
			syn_rows_add(after, c->part, c->key, c->keylen, c->digest);
	}
	add_run(after, before, at, before->data.len, left);
	keep_marks(before, unchanged, after);
}

char *
syn_rows_digest(SynScopeRows *rows, const SynManifestParts *manifest, const text *scope_id)
{
	SynScopeHash hash;
	SynRowsMark mark = {0};
	Record		r;
	int			at;

	Assert(rows->complete);
	syn_scope_hash_begin(&hash, manifest->schema_hash, VARDATA_ANY(scope_id), VARSIZE_ANY_EXHDR(scope_id), rows->count);
	if (rows->marks.len > 0)
	{
		memcpy(&mark, rows->marks.data + rows->marks.len - sizeof(mark), sizeof(mark));
		syn_scope_hash_resume(&hash, &mark.state, mark.added);
	}
	for (at = mark.at; next_record(rows, &at, &r);)
	{
		syn_scope_hash_row(&hash, manifest->parts[r.part].rel, r.key, r.keylen, r.key + r.keylen);
		if (at - mark.at < MARK_DISTANCE)
			continue;
		mark.at = at;
		mark.added = hash.added;
		syn_scope_hash_save(&hash, &mark.state);
		appendBinaryStringInfo(&rows->marks, (char *) &mark, sizeof(mark));
	}
	return syn_scope_hash_end(&hash);
}
