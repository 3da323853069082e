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
#include "utils/uuid.h"

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

/* --- textset.c: results of one row or user, streamed, as a set --- */

typedef struct TextRef
{
	int			offset;
	int			len;
} TextRef;

typedef struct TextSet
{
	int			sqlstate;		/* of failures */
	int			limit;			/* distinct texts; 0: none */
	const char *too_many;		/* the failure when there are more */
	StringInfoData bytes;
	StringInfoData item;
	TextRef    *refs;
	int			n;
	int			allocated;
} TextSet;

extern void text_set_init(TextSet *set, int sqlstate, int limit, const char *too_many);
extern void text_set_clear(TextSet *set);
extern void text_set_add(TextSet *set, const char *data, int len);
extern void text_set_finish(TextSet *set);	/* orders it by octets, without duplicates */
extern Datum text_set_get(TextSet *set, int i);

/* --- scopeset.c --- */

/* Adds a scope that a function returned, if it is one. */
extern void scope_add(TextSet *set, Datum scope, bool isnull, bool assigned);

/* --- seceval.c --- */

/* The canonical text of a uuid; false for any other text. */
extern bool syn_parse_uuid(Datum key, pg_uuid_t *uuid);

/* --- evalerror.c --- */

/* Failure of an evaluation. Names what is wrong, never a value. */
pg_noreturn extern void syn_evaluation_failed(int sqlstate, const char *reason);

/* Raised by the function itself: no failure of ours, and no condition of the server (cancelled, out of memory, deadlock). */
extern bool syn_is_function_error(int sqlstate, int failure);

/* In PG_CATCH: a failure for the function's own errors; all others go on as they are. */
pg_noreturn extern void syn_function_failed(int failure, const char *reason);

#endif							/* SYNCHRO_SECEVAL_H */
