/*
 * funccheck_body.c
 *		Walk over a function's parsed body. pg_depend does not do: it leaves out what is built in.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_namespace.h"
#include "nodes/nodeFuncs.h"
#include "nodes/parsenodes.h"
#include "nodes/primnodes.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "compat.h"
#include "funccheck.h"

typedef struct Walk
{
	FunctionKind kind;
	Oid			reader;
	const char *broken;
	bool		uses[2];		/* of an impact function: the old and the new row */
} Walk;

static bool
broken(Walk *walk, const char *rule)
{
	walk->broken = rule;
	return true;				/* ends the walk */
}

static bool
in_schema(Oid schema, const char *name)
{
	return schema == get_namespace_oid(name, true);
}

/* A relation that the body reads. */
static bool
check_relation(Walk *walk, Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	FormData_pg_class rel;

	if (!HeapTupleIsValid(tuple))
		return broken(walk, "it reads a relation that does not exist");
	rel = *(Form_pg_class) GETSTRUCT(tuple);
	ReleaseSysCache(tuple);

	if (rel.relpersistence == RELPERSISTENCE_TEMP)
		return broken(walk, "it reads a temporary relation");
	if (walk->kind == FUNCTION_ASSIGNMENT)
	{
		if (in_schema(rel.relnamespace, "synchro") || in_schema(rel.relnamespace, "synchro_data"))
			return broken(walk, "it reads schema synchro");
	}
	else if (rel.relkind != RELKIND_VIEW || !in_schema(rel.relnamespace, "synchro_projection"))
		return broken(walk, "it reads a relation that is not a projection view");
	if (syn_schema_aclcheck(rel.relnamespace, walk->reader) != ACLCHECK_OK)
		return broken(walk, "its owner lacks USAGE on the schema of a relation that it reads");
	if (pg_class_aclcheck(relid, walk->reader, ACL_SELECT) != ACLCHECK_OK)
		return broken(walk, "its owner lacks SELECT on a relation that it reads");
	return false;
}

static bool
check_call(Oid function, void *context)
{
	Walk	   *walk = context;
	const char *rule = funccheck_call(function);

	return rule ? broken(walk, rule) : false;
}

/* Sorting, grouping and set operations name their operators. */
static bool
check_operator(Walk *walk, Oid operator)
{
	return OidIsValid(operator) && check_call(get_opcode(operator), walk);
}

static bool
check_sort_clauses(Walk *walk, List *clauses)
{
	ListCell   *cell;

	foreach(cell, clauses)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, cell);

		if (check_operator(walk, clause->eqop) || check_operator(walk, clause->sortop))
			return true;
	}
	return false;
}

/* Comparing values of a type uses its default operator class. */
static bool
check_comparison(Walk *walk, Oid type)
{
	TypeCacheEntry *entry = lookup_type_cache(type, TYPECACHE_CMP_PROC);

	return OidIsValid(entry->cmp_proc) && check_call(entry->cmp_proc, walk);
}

static bool walk_node(Node *node, Walk *walk);

static bool
walk_query(Query *query, Walk *walk)
{
	ListCell   *cell;

	if (query->commandType != CMD_SELECT || query->hasModifyingCTE || query->utilityStmt)
		return broken(walk, "it does something else than SELECT");
	if (query->rowMarks != NIL)
		return broken(walk, "it locks rows");
	foreach(cell, query->rtable)
	{
		RangeTblEntry *rte = lfirst_node(RangeTblEntry, cell);

		if (rte->rtekind == RTE_RELATION && check_relation(walk, rte->relid))
			return true;
		if (rte->rtekind != RTE_RELATION && rte->rtekind != RTE_SUBQUERY && rte->rtekind != RTE_JOIN &&
			rte->rtekind != RTE_FUNCTION && rte->rtekind != RTE_VALUES && rte->rtekind != RTE_CTE && rte->rtekind != RTE_RESULT
#if PG_VERSION_NUM >= 180000
			&& rte->rtekind != RTE_GROUP
#endif
			)
			return broken(walk, "it reads something else than relations, subqueries and functions");
	}
	if (check_sort_clauses(walk, query->sortClause) || check_sort_clauses(walk, query->groupClause) ||
		check_sort_clauses(walk, query->distinctClause))
		return true;
	foreach(cell, query->windowClause)
	{
		WindowClause *clause = lfirst_node(WindowClause, cell);

		if (check_sort_clauses(walk, clause->partitionClause) || check_sort_clauses(walk, clause->orderClause))
			return true;
		if ((OidIsValid(clause->startInRangeFunc) && check_call(clause->startInRangeFunc, walk)) ||
			(OidIsValid(clause->endInRangeFunc) && check_call(clause->endInRangeFunc, walk)))
			return true;
	}
	return query_tree_walker(query, walk_node, walk, 0);
}

/* Constructs that check_functions_in_node leaves to its callers. */
static bool
walk_node(Node *node, Walk *walk)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_Query:
			return walk_query((Query *) node, walk);
		case T_Param:
			if (((Param *) node)->paramkind == PARAM_EXTERN && ((Param *) node)->paramid <= lengthof(walk->uses))
				walk->uses[((Param *) node)->paramid - 1] = true;
			break;
		case T_SQLValueFunction:
			return broken(walk, "it uses the time or the session's identity");
		case T_NextValueExpr:
			return broken(walk, "it uses a sequence");
		case T_XmlExpr:
			return broken(walk, "it uses an XML construct");
		case T_TableSampleClause:
			return broken(walk, "it samples a table");
#if PG_VERSION_NUM >= 170000
		case T_JsonExpr:
			return broken(walk, "it uses an SQL/JSON query function");
#endif
		case T_CoerceToDomain:
			if (((CoerceToDomain *) node)->resulttype >= FirstUnpinnedObjectId)
				return broken(walk, "it casts to a domain");
			break;
		case T_MinMaxExpr:
			if (check_comparison(walk, ((MinMaxExpr *) node)->minmaxtype))
				return true;
			break;
		case T_Aggref:
			if (check_sort_clauses(walk, ((Aggref *) node)->aggorder) || check_sort_clauses(walk, ((Aggref *) node)->aggdistinct))
				return true;
			break;
		case T_SetOperationStmt:
			if (check_sort_clauses(walk, ((SetOperationStmt *) node)->groupClauses))
				return true;
			break;
		default:
			break;
	}
	if (check_functions_in_node(node, check_call, walk))
		return true;
	return expression_tree_walker(node, walk_node, walk);
}

const char *
funccheck_body(List *queries, FunctionKind kind, Oid reader)
{
	Walk		walk = {.kind = kind, .reader = reader};
	ListCell   *cell;

	foreach(cell, queries)
	{
		if (walk_node(lfirst(cell), &walk))
			return walk.broken;
	}
	/* what a change takes away is in the old row alone, what it adds in the new one */
	if (kind == FUNCTION_IMPACT && walk.uses[0] != walk.uses[1])
		return walk.uses[0] ? "it looks at the old row only" : "it looks at the new row only";
	return NULL;
}
