/*
 * scopelock.h
 *		Locks of scopes that only this extension can take.
 */
#ifndef SYNCHRO_SCOPELOCK_H
#define SYNCHRO_SCOPELOCK_H

#include "postgres.h"

typedef enum SynScopeLock
{
	SYN_LOCK_DIGEST = 1,		/* key: the scope's number */
	SYN_LOCK_STAGE = 2			/* key: a hash of the scope's id */
} SynScopeLock;

/* Held until the transaction ends. False: somebody else has it, and wait was not asked for. */
extern bool syn_lock_scope(SynScopeLock purpose, uint32 key, bool wait);

#endif							/* SYNCHRO_SCOPELOCK_H */
