/*
 * canonical_scope.h
 *		Streaming scope digest.
 */
#ifndef SYNCHRO_CANONICAL_SCOPE_H
#define SYNCHRO_CANONICAL_SCOPE_H

#include "canonical.h"
#include "compat.h"
#include "scope_rows.h"

typedef struct SynScopeHash
{
	SynHashState state;
	StringInfoData buf;			/* input gathered for the next update */
	uint64		announced;
	uint64		added;
} SynScopeHash;

/* The number of entries comes first in the hash, so it is announced here and must be met. */
extern void syn_scope_hash_begin(SynScopeHash *hash, const uint8 *schema_hash, const char *scope_id, int scope_len,
								 uint64 cardinality);

/* The state after what has been added so far; and going on from there, instead of from the beginning. */
extern void syn_scope_hash_save(SynScopeHash *hash, SynHashState *state);
extern void syn_scope_hash_resume(SynScopeHash *hash, const SynHashState *state, uint64 added);

/* The next row, in identity order: its relation, the compact octets of its key, its digest. */
extern void syn_scope_hash_row(SynScopeHash *hash, const SynRelation *rel, const char *key, int keylen, const void *digest);

/* The same of a row whose identity is there: the caller appends blob(row_identity) and the digest to the returned buffer. */
extern StringInfo syn_scope_hash_entry(SynScopeHash *hash);

/* The digest as 64 hexadecimal digits. */
extern char *syn_scope_hash_end(SynScopeHash *hash);

/* Raises: a stored entry has what is said. */
pg_noreturn extern void syn_entry_damaged(const char *what);

/*
 * The digest of a scope and how many live rows it has, computed from its entries. rows: gets them as far as they fit.
 */
extern char *syn_scope_digest(int64 scope_no, const SynManifestParts *manifest, const text *scope_id, SynScopeRows *rows, uint64 *cardinality);

/*
 * The live rows of a scope. hash: NULL, or gets them too. False: some entry has a digest of another manifest.
 */
extern bool syn_scope_entries(int64 scope_no, const SynManifestParts *manifest, SynScopeRows *rows, SynScopeHash *hash);

/*
 * What the effects above a position have changed. Returns how many rows, or -1: too many, or some entry has a digest of another manifest.
 */
extern int	syn_scope_changes(int64 scope_no, const SynManifestParts *manifest, XLogRecPtr after, SynRowChange **changes);

#endif							/* SYNCHRO_CANONICAL_SCOPE_H */
