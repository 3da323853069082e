/*
 * canonical_scope.h
 *		Streaming scope digest.
 */
#ifndef SYNCHRO_CANONICAL_SCOPE_H
#define SYNCHRO_CANONICAL_SCOPE_H

#include "common/cryptohash.h"

#include "canonical.h"
#include "compat.h"

typedef struct SynScopeHash
{
	pg_cryptohash_ctx *ctx;
	StringInfoData buf;			/* input gathered for the next update */
	uint64		announced;
	uint64		added;
} SynScopeHash;

/* The number of entries comes first in the hash, so it is announced here and must be met. */
extern void syn_scope_hash_begin(SynScopeHash *hash, const uint8 *schema_hash, const char *scope_id, int scope_len,
								 uint64 cardinality);

/* The next entry, in identity order: the caller appends blob(row_identity) and the digest to the returned buffer. */
extern StringInfo syn_scope_hash_entry(SynScopeHash *hash);

/* The same of so many entries that were gathered elsewhere. */
extern void syn_scope_hash_entries(SynScopeHash *hash, const char *data, int len, uint64 count);

/* The digest as 64 hexadecimal digits. */
extern char *syn_scope_hash_end(SynScopeHash *hash);

/* Raises: a stored entry has what is said. */
pg_noreturn extern void syn_entry_damaged(const char *what);

/* The digest of a scope, and how many live rows it has; NULL when some entry's digest was made under another manifest. */
extern char *syn_current_digest(int64 scope_no, int64 schema_version, const uint8 *schema_hash, const text *scope_id, uint64 *cardinality);

#endif							/* SYNCHRO_CANONICAL_SCOPE_H */
