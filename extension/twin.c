/*
 * twin.c
 *		Inlinable copies of membership and impact functions.
 *
 * The planner does not inline a function that has a SET clause, and every registered one has: a twin has the same parsed body and owner and
 * no settings, which the evaluation pins instead. It lives in synchro_twin, only its owner may execute it, and it goes when
 * the function goes. It is no member of the extension: a dump takes it along like any function, and a later registration replaces it.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_language.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_proc.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/parsenodes.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "actas.h"
#include "compat.h"
#include "errcodes.h"
#include "seceval.h"

/* GRANT or REVOKE of all privileges, as superuser, from parse nodes. */
static void
change_privileges(bool grant, ObjectType type, Node *object, const char *privilege, RoleSpec *grantee)
{
	GrantStmt  *stmt = makeNode(GrantStmt);
	SynActor	caller;

	stmt->is_grant = grant;
	stmt->targtype = ACL_TARGET_OBJECT;
	stmt->objtype = type;
	stmt->objects = list_make1(object);
	if (privilege)
	{
		AccessPriv *priv = makeNode(AccessPriv);

		priv->priv_name = pstrdup(privilege);
		stmt->privileges = list_make1(priv);
	}
	stmt->grantees = list_make1(grantee);
	stmt->behavior = DROP_RESTRICT;
	syn_act_as(&caller, BOOTSTRAP_SUPERUSERID);
	ExecuteGrantStmt(stmt);
	syn_act_back(&caller);
	CommandCounterIncrement();
}

static RoleSpec *
role_spec(RoleSpecType type, const char *name)
{
	RoleSpec   *spec = makeNode(RoleSpec);

	spec->roletype = type;
	spec->rolename = name ? pstrdup(name) : NULL;
	spec->location = -1;
	return spec;
}

/* Only the owner executes the twin; it needs the schema for that. */
static void
restrict_twin(const char *name, Oid schema, Oid owner, const oidvector *arguments)
{
	ObjectWithArgs *twin = makeNode(ObjectWithArgs);

	twin->objname = list_make2(makeString("synchro_twin"), makeString(pstrdup(name)));
	for (int i = 0; i < arguments->dim1; i++)
		twin->objargs = lappend(twin->objargs, makeTypeNameFromOid(arguments->values[i], -1));
	change_privileges(false, OBJECT_FUNCTION, (Node *) twin, NULL, role_spec(ROLESPEC_PUBLIC, NULL));
	if (syn_schema_aclcheck(schema, owner) != ACLCHECK_OK)
		change_privileges(true, OBJECT_SCHEMA, (Node *) makeString("synchro_twin"), "usage",
						  role_spec(ROLESPEC_CSTRING, GetUserNameFromId(owner, false)));
}

PG_FUNCTION_INFO_V1(synchro_make_twin);

/* _make_twin(function oid, name name) oid */
Datum
synchro_make_twin(PG_FUNCTION_ARGS)
{
	Oid			function = PG_GETARG_OID(0);
	char	   *name = NameStr(*PG_GETARG_NAME(1));
	Oid			schema = get_namespace_oid("synchro_twin", false);
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	Form_pg_proc form;
	Datum		body;
	Datum		argument_names;
	ObjectAddress twin;
	ObjectAddress original;
	bool		isnull;
	bool		unnamed;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_FUNCTION), errmsg("the function does not exist")));
	form = (Form_pg_proc) GETSTRUCT(tuple);
	body = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosqlbody, &isnull);
	argument_names = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_proargnames, &unnamed);
	if (isnull || !form->proretset)
		ereport(ERROR, (errcode(SYNCHRO_ERR_INVALID_PARAMETER), errmsg("only a checked function can have a twin")));

	twin = ProcedureCreate(name, schema, true, true, form->prorettype, form->proowner,
						   SQLlanguageId, F_FMGR_SQL_VALIDATOR, "", NULL, stringToNode(TextDatumGetCString(body)),
						   PROKIND_FUNCTION, false, false, false, PROVOLATILE_STABLE, form->proparallel,
						   buildoidvector(form->proargtypes.values, form->pronargs), PointerGetDatum(NULL), PointerGetDatum(NULL),
						   unnamed ? PointerGetDatum(NULL) : argument_names, NIL, SYN_NO_TRANSFORMS, PointerGetDatum(NULL),
						   InvalidOid, form->procost, form->prorows);
	ObjectAddressSet(original, ProcedureRelationId, function);
	recordDependencyOn(&twin, &original, DEPENDENCY_AUTO);
	CommandCounterIncrement();
	restrict_twin(name, schema, form->proowner, &form->proargtypes);
	ReleaseSysCache(tuple);
	PG_RETURN_OID(twin.objectId);
}

static bool
same_body(HeapTuple left, HeapTuple right)
{
	bool		left_null;
	bool		right_null;
	Datum		left_body = SysCacheGetAttr(PROCOID, left, Anum_pg_proc_prosqlbody, &left_null);
	Datum		right_body = SysCacheGetAttr(PROCOID, right, Anum_pg_proc_prosqlbody, &right_null);

	/* as trees: their text also holds places in the source */
	return !left_null && !right_null &&
		equal(stringToNode(TextDatumGetCString(left_body)), stringToNode(TextDatumGetCString(right_body)));
}

static bool
has_settings(HeapTuple tuple)
{
	bool		isnull;

	(void) SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_proconfig, &isnull);
	return !isnull;
}

/* The owner of a twin can change it. The function is pinned by its hash, and pins the twin. */
bool
syn_twin_matches(Oid twin, Oid function)
{
	HeapTuple	left = SearchSysCache1(PROCOID, ObjectIdGetDatum(twin));
	HeapTuple	right = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	bool		matches = false;

	if (HeapTupleIsValid(left) && HeapTupleIsValid(right))
	{
		Form_pg_proc t = (Form_pg_proc) GETSTRUCT(left);
		Form_pg_proc f = (Form_pg_proc) GETSTRUCT(right);

		matches = t->prokind == PROKIND_FUNCTION && t->prolang == SQLlanguageId && t->proowner == f->proowner &&
			t->proretset && t->prorettype == f->prorettype && t->pronargs == f->pronargs &&
			memcmp(t->proargtypes.values, f->proargtypes.values, f->pronargs * sizeof(Oid)) == 0 && t->provolatile == PROVOLATILE_STABLE &&
			!t->prosecdef && !t->proisstrict && !OidIsValid(t->prosupport) && !has_settings(left) && same_body(left, right);
	}
	if (HeapTupleIsValid(left))
		ReleaseSysCache(left);
	if (HeapTupleIsValid(right))
		ReleaseSysCache(right);
	return matches;
}
