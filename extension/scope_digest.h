/*
 * scope_digest.h
 *		Digests of scopes under the transaction's snapshot, from the rows that are kept of them or from their entries.
 */
#ifndef SYNCHRO_SCOPE_DIGEST_H
#define SYNCHRO_SCOPE_DIGEST_H

#include "postgres.h"

#include "digest_cache.h"

typedef struct SynDigester SynDigester;

/* Made for one call: the manifest, and memory that is used again for each scope. */
extern SynDigester *syn_digester(int64 schema_version);

/* Answers a digest. */
extern void syn_digest(SynDigester *digester, SynDigest *d);

#endif							/* SYNCHRO_SCOPE_DIGEST_H */
