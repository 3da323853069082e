/*
 * seceval.h
 *		Evaluation of registered functions: as their owner, security-restricted, read-only.
 */
#ifndef SYNCHRO_SECEVAL_H
#define SYNCHRO_SECEVAL_H

#include "postgres.h"

#include "lib/stringinfo.h"
#include "tcop/dest.h"
#include "utils/tuplestore.h"

#include "compat.h"

/* --- restricted.c: the one place where code of an application runs --- */

typedef void (*SynRestrictedBody) (void *arg);

/* Runs body as the role, security-restricted, with pinned settings. */
extern void syn_restricted_call(Oid role, SynRestrictedBody body, void *arg);

/* Until the caller ends the GUC nest level. */
extern void syn_pin_settings(void);
extern void syn_set_option(const char *name, const char *value);

/* --- funcdef.c: identity of functions --- */

/* SHA-256 of the definition, in hex, palloc'd; NULL when there is no such function. */
extern char *syn_definition_hash(Oid function);

/* Changes whenever any function may have changed: what was verified at the same value still holds. */
extern uint64 syn_function_epoch(void);

/* "schema"."name" */
extern char *syn_function_name(Oid function);
extern Oid	syn_function_owner(Oid function);

/* --- twin.c --- */

/* Is the twin what _make_twin made of the function? */
extern bool syn_twin_matches(Oid twin, Oid function);

/* --- scopeset.c: the scopes of one row or user, streamed, as a set --- */

typedef struct ScopeRef
{
	int			offset;
	int			len;
} ScopeRef;

typedef struct ScopeSet
{
	int			sqlstate;		/* of failures */
	int			limit;			/* distinct scopes; 0: none */
	const char *too_many;		/* the failure when there are more */
	bool		assigned;		/* of a user: names of the form user:... are reserved */
	StringInfoData bytes;
	ScopeRef   *refs;
	int			n;
	int			allocated;
} ScopeSet;

extern void scope_set_init(ScopeSet *set, int sqlstate, int limit, const char *too_many, bool assigned);
extern void scope_set_add(ScopeSet *set, Datum scope, bool isnull);
extern void scope_set_finish(ScopeSet *set);	/* orders it by octets, without duplicates */
extern Datum scope_set_get(const ScopeSet *set, int i, char *buffer);

#define SCOPE_MAX_LEN 255
#define SCOPE_BUFFER (VARHDRSZ + SCOPE_MAX_LEN)

/* --- evalerror.c --- */

/* Failure of an evaluation. Names what is wrong, never a value. */
pg_noreturn extern void syn_evaluation_failed(int sqlstate, const char *reason);

/* Raised by the function itself: no failure of ours, and no condition of the server (cancelled, out of memory, deadlock). */
extern bool syn_is_function_error(int sqlstate, int failure);

/* In PG_CATCH: a failure for the function's own errors; all others go on as they are. */
pg_noreturn extern void syn_function_failed(int failure, const char *reason);

#endif							/* SYNCHRO_SECEVAL_H */
