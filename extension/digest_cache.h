/*
 * digest_cache.h
 *		Scope digests, computed once for all sessions that wait for the same one.
 */
#ifndef SYNCHRO_DIGEST_CACHE_H
#define SYNCHRO_DIGEST_CACHE_H

#include "postgres.h"

#include "access/xlogdefs.h"

typedef struct SynDigest
{
	int64		scope_no;
	text	   *scope_id;
	XLogRecPtr	high;			/* of the scope, under the transaction's snapshot */
	char	   *digest;			/* answer: 64 hexadecimal digits */
	int64		cardinality;
} SynDigest;

/*
 * The digests under the transaction's snapshot. The scopes are in the order of their ids: sessions that compute several digests take
 * turns without waiting for each other.
 */
extern void syn_cached_digests(int64 schema_version, SynDigest *digests, int n);

#endif							/* SYNCHRO_DIGEST_CACHE_H */
