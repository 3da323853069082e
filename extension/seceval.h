/*
 * seceval.h
 *		The one place where code of an application runs.
 */
#ifndef SYNCHRO_SECEVAL_H
#define SYNCHRO_SECEVAL_H

#include "postgres.h"

#include "executor/spi.h"

typedef void (*SynRestrictedBody) (void *arg);

/* Runs body as the role, security-restricted, with pinned settings (restricted.c). */
extern void syn_restricted_call(Oid role, SynRestrictedBody body, void *arg);

/* SHA-256 of a function's definition in hex, palloc'd; NULL when there is no such function (funcdef.c). */
extern char *syn_definition_hash(Oid function);

/* Is the twin still the function, apart from its settings (twin.c)? */
extern bool syn_twin_matches(Oid twin, Oid function);

/* The first broken rule, or NULL (funccheck.c). */
extern const char *syn_check_body(Oid function, Oid owner, bool membership);

#endif							/* SYNCHRO_SECEVAL_H */
