/*
 * funcdef.c
 *		Identity of registered functions: the hash of the definition, and when to look at it again.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_proc.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "canonical.h"
#include "seceval.h"

static uint64 epoch = 1;

static void
function_changed(Datum arg, int cacheid, uint32 hash)
{
	epoch++;
}

uint64
syn_function_epoch(void)
{
	static bool registered = false;

	if (!registered)
	{
		CacheRegisterSyscacheCallback(PROCOID, function_changed, (Datum) 0);
		registered = true;
	}
	return epoch;
}

Oid
syn_function_owner(Oid function)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	Oid			owner;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", function);
	owner = ((Form_pg_proc) GETSTRUCT(tuple))->proowner;
	ReleaseSysCache(tuple);
	return owner;
}

char *
syn_function_name(Oid function)
{
	return quote_qualified_identifier(get_namespace_name(get_func_namespace(function)), get_func_name(function));
}

/* pg_proc.prokind; 0 when there is no such function. */
static char
function_kind(Oid function)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	char		kind;

	if (!HeapTupleIsValid(tuple))
		return '\0';
	kind = ((Form_pg_proc) GETSTRUCT(tuple))->prokind;
	ReleaseSysCache(tuple);
	return kind;
}

/* The text of pg_get_functiondef depends on search_path and on formats: both are pinned. */
char *
syn_definition_hash(Oid function)
{
	char		kind = function_kind(function);
	uint8		hash[SYN_HASH_LEN];
	char	   *definition;
	int			nest_level;

	if (kind == '\0')
		return NULL;
	if (kind == PROKIND_AGGREGATE)
		definition = psprintf("aggregate %s", syn_function_name(function));	/* has no definition, and is refused */
	else
	{
		nest_level = NewGUCNestLevel();
		syn_pin_settings();
		definition = TextDatumGetCString(OidFunctionCall1(F_PG_GET_FUNCTIONDEF, ObjectIdGetDatum(function)));
		AtEOXact_GUC(false, nest_level);
	}
	syn_sha256(definition, strlen(definition), hash);
	return syn_hash_hex(hash);
}

PG_FUNCTION_INFO_V1(synchro_definition_hash);

/* _definition_hash(function oid) text */
Datum
synchro_definition_hash(PG_FUNCTION_ARGS)
{
	char	   *hash = syn_definition_hash(PG_GETARG_OID(0));

	if (hash == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(hash));
}
