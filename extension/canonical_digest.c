/*
 * canonical_digest.c
 *		Row identity and row digest of a described relation.
 */
#include "postgres.h"

#include "canonical.h"

static int
compare_fields(const void *a, const void *b)
{
	return strcmp(((const SynField *) a)->field_id, ((const SynField *) b)->field_id);
}

void
syn_relation_finish(SynRelation *rel)
{
	const char *key_id = rel->fields[rel->key].field_id;

	qsort(rel->fields, rel->nfields, sizeof(SynField), compare_fields);
	for (rel->key = 0; rel->fields[rel->key].field_id != key_id;)
		rel->key++;

	initStringInfo(&rel->identity);
	syn_append_domain(&rel->identity, "synchro:v3:row-identity:v1");
	syn_append_text(&rel->identity, rel->table_id);
	syn_append_text(&rel->identity, key_id);
}

void
syn_append_identity(StringInfo out, const SynRelation *rel, const SynValue *key)
{
	appendBinaryStringInfo(out, rel->identity.data, rel->identity.len);
	syn_append_typed(out, key);
}

/* Overwrites a length that was left open. */
static void
close_blob(StringInfo out, int start)
{
	uint64		len = out->len - start - sizeof(uint64);

	for (int i = 7; i >= 0; i--, len >>= 8)
		out->data[start + i] = len & 0xFF;
}

void
syn_row_digest(const SynRelation *rel, const SynValue *values, const char *server_version, int version_len,
			   StringInfo scratch, uint8 *digest)
{
	int			start;

	resetStringInfo(scratch);
	syn_append_domain(scratch, "synchro:v3:row-digest:v1");
	appendBinaryStringInfo(scratch, (const char *) rel->schema_hash, SYN_HASH_LEN);

	start = scratch->len;
	syn_append_u64(scratch, 0);
	syn_append_identity(scratch, rel, &values[rel->key]);
	close_blob(scratch, start);

	start = scratch->len;
	syn_append_u64(scratch, 0);
	syn_append_u32(scratch, rel->nfields);
	for (int i = 0; i < rel->nfields; i++)
	{
		syn_append_text(scratch, rel->fields[i].field_id);
		syn_append_typed(scratch, &values[i]);
	}
	close_blob(scratch, start);

	syn_append_blob(scratch, server_version, version_len);
	syn_sha256(scratch->data, scratch->len, digest);
}
