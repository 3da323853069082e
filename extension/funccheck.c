/*
 * funccheck.c
 *		Rules that registered functions keep: signature, attributes, privileges; the body is funccheck_body.c's.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "nodes/nodes.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/varlena.h"

#include "actas.h"
#include "compat.h"
#include "errcodes.h"
#include "funccheck.h"

typedef struct FunctionRow
{
	HeapTuple	tuple;
	Form_pg_proc form;
	FunctionKind kind;
	Oid			owner;			/* must own it */
	Oid			key_type;
} FunctionRow;

/* A column that the fixed part of the row does not hold; false: NULL. */
static bool
get_column(const FunctionRow *f, AttrNumber attno, Datum *value)
{
	bool		isnull;

	*value = SysCacheGetAttr(PROCOID, f->tuple, attno, &isnull);
	return !isnull;
}

static const char *
check_signature(const FunctionRow *f)
{
	Form_pg_proc p = f->form;
	Datum		unused;

	if (OidIsValid(p->provariadic))
		return "it has a VARIADIC argument";
	if (p->pronargdefaults > 0)
		return "an argument has a default";
	if (get_column(f, Anum_pg_proc_proallargtypes, &unused))
		return "it has OUT arguments or returns a table";
	if (f->kind == FUNCTION_IMPACT)
	{
		Oid			row_ref = GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid, CStringGetDatum("synchro_row_ref"),
											  ObjectIdGetDatum(get_namespace_oid("synchro", false)));

		if (p->pronargs != 2 || p->proargtypes.values[0] != JSONBOID || p->proargtypes.values[1] != JSONBOID)
			return "its arguments are not (jsonb, jsonb)";
		if (!p->proretset || p->prorettype != row_ref)
			return "it does not return SETOF synchro.synchro_row_ref";
		return NULL;
	}
	if (p->pronargs != 1)
		return "it does not have exactly one argument";
	if (p->proargtypes.values[0] != f->key_type)
		return f->kind == FUNCTION_MEMBERSHIP ? "its argument does not have the key's type" : "its argument is not text";
	if (!p->proretset || p->prorettype != TEXTOID)
		return "it does not return SETOF text";
	return NULL;
}

/* Exactly SET search_path = pg_catalog, synchro: the twin that the planner inlines has no settings at all. */
static const char *
check_settings(const FunctionRow *f)
{
	static const char prefix[] = "search_path=";
	Datum		config;
	Datum	   *settings;
	int			n;
	char	   *setting;
	List	   *schemas;

	if (!get_column(f, Anum_pg_proc_proconfig, &config))
		return "it does not SET search_path = pg_catalog, synchro";
	deconstruct_array(DatumGetArrayTypeP(config), TEXTOID, -1, false, TYPALIGN_INT, &settings, NULL, &n);
	for (int i = 0; i < n; i++)
	{
		setting = TextDatumGetCString(settings[i]);
		if (strncmp(setting, prefix, strlen(prefix)) != 0)
			return "it sets something else than search_path";
	}
	setting = TextDatumGetCString(settings[0]) + strlen(prefix);
	if (!SplitIdentifierString(setting, ',', &schemas) || list_length(schemas) != 2 ||
		strcmp(linitial(schemas), "pg_catalog") != 0 || strcmp(lsecond(schemas), "synchro") != 0)
		return "it does not SET search_path = pg_catalog, synchro";
	return NULL;
}

static bool
public_may_execute(const FunctionRow *f)
{
	Datum		acl;
	AclItem    *items;

	if (!get_column(f, Anum_pg_proc_proacl, &acl))
		return true;			/* the default */
	items = ACL_DAT(DatumGetAclP(acl));
	for (int i = 0; i < ACL_NUM(DatumGetAclP(acl)); i++)
		if (items[i].ai_grantee == ACL_ID_PUBLIC && (ACLITEM_GET_PRIVS(items[i]) & ACL_EXECUTE))
			return true;
	return false;
}

static const char *
check_attributes(const FunctionRow *f)
{
	Form_pg_proc p = f->form;
	Datum		unused;
	Oid			function = p->oid;

	if (p->provolatile != PROVOLATILE_STABLE)
		return "it is not STABLE";
	if (p->prosecdef)
		return "it is SECURITY DEFINER";
	if (OidIsValid(p->prosupport) || get_column(f, Anum_pg_proc_protrftypes, &unused))
		return "it has a support function or transforms";
	if (p->proowner == syn_owner())
		return "it belongs to synchro_owner";
	if (!has_privs_of_role(f->owner, p->proowner))
		return "it belongs to another role";
	if (public_may_execute(f))
		return "PUBLIC may execute it";
	if (f->kind == FUNCTION_ASSIGNMENT)
	{
		if (syn_function_aclcheck(function, syn_owner()) != ACLCHECK_OK)
			return "synchro_owner may not execute it";
	}
	else if (syn_function_aclcheck(function, get_role_oid("synchro_worker", false)) != ACLCHECK_OK)
		return "synchro_worker may not execute it";
	return NULL;
}

List *
funccheck_queries(HeapTuple function)
{
	bool		isnull;
	Datum		stored = SysCacheGetAttr(PROCOID, function, Anum_pg_proc_prosqlbody, &isnull);
	Node	   *body;

	if (isnull)
		return NIL;
	body = stringToNode(TextDatumGetCString(stored));
	return IsA(body, List) ? linitial_node(List, castNode(List, body)) : list_make1(body);
}

static const char *
check_body(const FunctionRow *f)
{
	List	   *queries = funccheck_queries(f->tuple);

	if (queries == NIL)
		return "its body is a string, not BEGIN ATOMIC or RETURN";
	return funccheck_body(queries, f->kind, f->form->proowner);
}

static const char *
check_function(const FunctionRow *f)
{
	const char *rule;

	if (f->form->prokind != PROKIND_FUNCTION)
		return "it is not a plain function";
	if (f->form->prolang != SQLlanguageId)
		return "its language is not SQL";
	if ((rule = check_signature(f)) || (rule = check_attributes(f)) || (rule = check_settings(f)))
		return rule;
	return check_body(f);
}

static FunctionKind
kind_by_name(const char *name)
{
	if (strcmp(name, "membership") == 0)
		return FUNCTION_MEMBERSHIP;
	if (strcmp(name, "impact") == 0)
		return FUNCTION_IMPACT;
	if (strcmp(name, "assignment") != 0)
		ereport(ERROR, (errcode(SYNCHRO_ERR_INVALID_PARAMETER), errmsg("unknown kind of function")));
	return FUNCTION_ASSIGNMENT;
}

PG_FUNCTION_INFO_V1(synchro_check_function);

/* _check_function(function oid, kind text, owner oid, key_type oid) text */
Datum
synchro_check_function(PG_FUNCTION_ARGS)
{
	FunctionRow f;
	const char *rule;

	f.kind = kind_by_name(text_to_cstring(PG_GETARG_TEXT_PP(1)));
	f.owner = PG_GETARG_OID(2);
	f.key_type = f.kind == FUNCTION_MEMBERSHIP ? PG_GETARG_OID(3) : TEXTOID;
	f.tuple = SearchSysCache1(PROCOID, PG_GETARG_DATUM(0));
	if (!HeapTupleIsValid(f.tuple))
		PG_RETURN_TEXT_P(cstring_to_text("it does not exist"));
	f.form = (Form_pg_proc) GETSTRUCT(f.tuple);
	rule = check_function(&f);
	ReleaseSysCache(f.tuple);
	if (rule == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(rule));
}
