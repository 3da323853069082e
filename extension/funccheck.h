/*
 * funccheck.h
 *		Rules that registered functions keep (docs/registration.md). Each check returns the broken rule, short and complete, or NULL.
 */
#ifndef SYNCHRO_FUNCCHECK_H
#define SYNCHRO_FUNCCHECK_H

#include "postgres.h"

#include "access/htup.h"
#include "nodes/parsenodes.h"
#include "nodes/pg_list.h"

typedef enum FunctionKind
{
	FUNCTION_MEMBERSHIP,
	FUNCTION_IMPACT,
	FUNCTION_ASSIGNMENT
} FunctionKind;

/* funccheck.c: the queries of a parsed body; NIL: it is a string. */
extern List *funccheck_queries(HeapTuple function);

/* funccheck_body.c: what the parsed body reads and calls; reader is the role it will run as. */
extern const char *funccheck_body(List *queries, FunctionKind kind, Oid reader);

/* funccheck_calls.c: may it call this function? */
extern const char *funccheck_call(Oid function);

/* funcpin.c: does the query restrict its relation to the row with key = $1? */
extern bool funcpin_is_pinned(Query *query, int varno, AttrNumber key);

#endif							/* SYNCHRO_FUNCCHECK_H */
