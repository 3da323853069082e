/*
 * canonical_scope.h
 *		Streaming scope digest.
 */
#ifndef SYNCHRO_CANONICAL_SCOPE_H
#define SYNCHRO_CANONICAL_SCOPE_H

#include "common/cryptohash.h"

#include "canonical.h"

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

/* The digest as 64 hexadecimal digits. */
extern char *syn_scope_hash_end(SynScopeHash *hash);

#endif							/* SYNCHRO_CANONICAL_SCOPE_H */
