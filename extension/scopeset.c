/*
 * scopeset.c
 *		What may be a scope.
 */
#include "postgres.h"

#include "utils/builtins.h"

#include "compat.h"
#include "jcs.h"
#include "seceval.h"

#define SCOPE_MAX_LEN 255

/* Refused scopes: blank, too long, or no portable string. */
static const char *
check_scope(const char *scope, int len, bool assigned)
{
	bool		blank = true;
	bool		user = len >= 5 && memcmp(scope, "user:", 5) == 0;

	/* A user id may be as long as a scope: every user has a scope of its own. */
	if (len - (user ? 5 : 0) > SCOPE_MAX_LEN)
		return "a scope is longer than 255 octets";
	for (int i = 0; blank && i < len; i++)
		blank = strchr(" \t\n\r\f\v", scope[i]) != NULL;
	if (blank)
		return "a scope is blank";
	if (!syn_text_ok(scope, len))
		return "a scope is no portable string";
	if (assigned && user)
		return "an assigned scope starts with user:";
	return NULL;
}

/* assigned: of a user, where names of the form user:... are reserved. */
void
scope_add(TextSet *set, Datum scope, bool isnull, bool assigned)
{
	text	   *value;
	const char *problem;

	if (isnull)
		syn_evaluation_failed(set->sqlstate, "a scope is null");
	value = DatumGetTextPP(scope);
	problem = check_scope(VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value), assigned);
	if (problem)
		syn_evaluation_failed(set->sqlstate, problem);
	text_set_add(set, VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value));
	if ((Pointer) value != DatumGetPointer(scope))
		pfree(value);
}
