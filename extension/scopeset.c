/*
 * scopeset.c
 *		The scopes of one row or user while they stream in: validated, without duplicates, within bounds, in octet order.
 */
#include "postgres.h"

#include "utils/builtins.h"

#include "compat.h"
#include "jcs.h"
#include "seceval.h"

#define SMALL_SET 64

void
scope_set_init(ScopeSet *set, int sqlstate, int limit, const char *too_many, bool assigned)
{
	set->sqlstate = sqlstate;
	set->limit = limit;
	set->too_many = too_many;
	set->assigned = assigned;
	set->n = 0;
	set->allocated = SMALL_SET;
	set->refs = palloc(sizeof(ScopeRef) * set->allocated);
	initStringInfo(&set->bytes);
}

static int
compare_refs(const void *a, const void *b, void *arg)
{
	const char *bytes = arg;
	const ScopeRef *left = a;
	const ScopeRef *right = b;
	int			order = memcmp(bytes + left->offset, bytes + right->offset, Min(left->len, right->len));

	return order != 0 ? order : left->len - right->len;
}

/* Refused scopes: blank, too long, or no portable string. */
static const char *
check_scope(const ScopeSet *set, const char *scope, int len)
{
	bool		blank = true;

	if (len > SCOPE_MAX_LEN)
		return "a scope is longer than 255 octets";
	for (int i = 0; blank && i < len; i++)
		blank = strchr(" \t\n\r\f\v", scope[i]) != NULL;
	if (blank)
		return "a scope is blank";
	if (!syn_text_ok(scope, len))
		return "a scope is no portable string";
	if (set->assigned && len >= 5 && memcmp(scope, "user:", 5) == 0)
		return "an assigned scope starts with user:";
	return NULL;
}

void
scope_set_finish(ScopeSet *set)
{
	int			distinct = 0;

	if (set->n > 1)
	{
		qsort_arg(set->refs, set->n, sizeof(ScopeRef), compare_refs, set->bytes.data);
		for (int i = 0; i < set->n; i++)
			if (distinct == 0 || compare_refs(&set->refs[distinct - 1], &set->refs[i], set->bytes.data) != 0)
				set->refs[distinct++] = set->refs[i];
		set->n = distinct;
	}
	if (set->limit > 0 && set->n > set->limit)
		syn_evaluation_failed(set->sqlstate, set->too_many);
}

/* Gives back the octets of dropped duplicates. */
static void
compact(ScopeSet *set)
{
	char	   *old = palloc(set->bytes.len);

	memcpy(old, set->bytes.data, set->bytes.len);
	resetStringInfo(&set->bytes);
	for (int i = 0; i < set->n; i++)
	{
		int			offset = set->bytes.len;

		appendBinaryStringInfo(&set->bytes, old + set->refs[i].offset, set->refs[i].len);
		set->refs[i].offset = offset;
	}
	pfree(old);
}

static void
append_scope(ScopeSet *set, const char *data, int len)
{
	if (set->n == set->allocated)
	{
		/* duplicates first: memory follows the bound, not the number of results */
		scope_set_finish(set);
		compact(set);
		if (set->n > set->allocated / 2)
		{
			set->allocated *= 2;
			set->refs = repalloc(set->refs, sizeof(ScopeRef) * set->allocated);
		}
	}
	set->refs[set->n].offset = set->bytes.len;
	set->refs[set->n].len = len;
	set->n++;
	appendBinaryStringInfo(&set->bytes, data, len);
}

void
scope_set_add(ScopeSet *set, Datum scope, bool isnull)
{
	text	   *value;
	const char *data;
	const char *problem;
	int			len;
	bool		repeated;

	if (isnull)
		syn_evaluation_failed(set->sqlstate, "a scope is null");
	value = DatumGetTextPP(scope);
	data = VARDATA_ANY(value);
	len = VARSIZE_ANY_EXHDR(value);
	problem = check_scope(set, data, len);
	if (problem)
		syn_evaluation_failed(set->sqlstate, problem);

	/* repetitions of the last one are common (joins) and free */
	repeated = set->n > 0 && set->refs[set->n - 1].len == len &&
		memcmp(set->bytes.data + set->refs[set->n - 1].offset, data, len) == 0;
	if (!repeated)
		append_scope(set, data, len);
	if ((Pointer) value != DatumGetPointer(scope))
		pfree(value);
}

/* Scope i as text, made in a buffer of SCOPE_BUFFER octets, aligned. */
Datum
scope_set_get(const ScopeSet *set, int i, char *buffer)
{
	SET_VARSIZE(buffer, VARHDRSZ + set->refs[i].len);
	memcpy(VARDATA(buffer), set->bytes.data + set->refs[i].offset, set->refs[i].len);
	return PointerGetDatum(buffer);
}
