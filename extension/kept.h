/*
 * kept.h
 *		Rows of scopes kept in shared memory, so that a digest is computed from what has changed since the last one.
 */
#ifndef SYNCHRO_KEPT_H
#define SYNCHRO_KEPT_H

#include "postgres.h"

#include "access/xlogdefs.h"

#include "scope_rows.h"

/* What is kept: the rows of a scope under a manifest. The hash of the manifest also tells apart what was installed anew. */
typedef struct SynKeptKey
{
	Oid			database;
	int64		scope_no;
	uint8		schema_hash[SYN_HASH_LEN];
} SynKeptKey;

/* At which state: what a cursor of the scope is bound to, and the commit of the last effect. */
typedef struct SynKeptState
{
	int64		stream;
	int64		membership;
	int64		retention;
	XLogRecPtr	high;
} SynKeptState;

/* Called once, in the postmaster. */
extern void syn_kept_init(void);

/* So many octets of one scope are kept at most. */
extern Size syn_kept_limit(void);

/* Copies what is kept; false: nothing. */
extern bool syn_kept_fetch(const SynKeptKey *key, SynKeptState *state, SynScopeRows *rows);

/* Keeps rows in place of older ones; what was not used for the longest time makes room. */
extern void syn_kept_store(const SynKeptKey *key, const SynKeptState *state, const SynScopeRows *rows);

#endif							/* SYNCHRO_KEPT_H */
