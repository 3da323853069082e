/*
 * joined.c
 *		Columns of projections that a registered function compares for equality: through an index on them it reaches rows without
 *		reading all.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "funcapi.h"
#include "nodes/nodeFuncs.h"
#include "nodes/parsenodes.h"
#include "nodes/primnodes.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "funccheck.h"

typedef struct Walk
{
	List	   *queries;		/* from the outermost to the one being walked */
	Tuplestorestate *result;
	TupleDesc	desc;
} Walk;

/* A column of a query's own range table, through joins and subqueries. */
static void
compared(Walk *walk, Query *query, Node *node)
{
	RangeTblEntry *rte;
	Var		   *var;

	while (node && IsA(node, RelabelType))
		node = (Node *) ((RelabelType *) node)->arg;
	if (node == NULL || !IsA(node, Var))
		return;
	var = (Var *) node;
	rte = rt_fetch(var->varno, query->rtable);
	if (rte->rtekind == RTE_RELATION && var->varattno > 0)
	{
		Datum		values[] = {ObjectIdGetDatum(rte->relid), Int16GetDatum(var->varattno)};
		bool		nulls[] = {false, false};

		tuplestore_putvalues(walk->result, walk->desc, values, nulls);
	}
	else if (rte->rtekind == RTE_JOIN && var->varattno > 0)
		compared(walk, query, list_nth(rte->joinaliasvars, var->varattno - 1));
	else if (rte->rtekind == RTE_SUBQUERY && var->varattno > 0)
	{
		TargetEntry *entry = list_nth_node(TargetEntry, rte->subquery->targetList, var->varattno - 1);

		if (!IsA(entry->expr, Var) || ((Var *) entry->expr)->varlevelsup == 0)
			compared(walk, rte->subquery, (Node *) entry->expr);
	}
}

/* Both sides of an equality that an index can answer. */
static void
compared_all(Walk *walk, Oid operator, List *args)
{
	ListCell   *cell;

	if (list_length(args) != 2 || !op_mergejoinable(operator, exprType(linitial(args))))
		return;
	foreach(cell, args)
	{
		Node	   *node = lfirst(cell);
		int			level;

		while (node && IsA(node, RelabelType))
			node = (Node *) ((RelabelType *) node)->arg;
		if (node == NULL || !IsA(node, Var))
			continue;
		level = list_length(walk->queries) - 1 - (int) ((Var *) node)->varlevelsup;
		if (level >= 0)
			compared(walk, list_nth_node(Query, walk->queries, level), node);
	}
}

static bool
walk_node(Node *node, Walk *walk)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
	{
		walk->queries = lappend(walk->queries, node);
		query_tree_walker((Query *) node, walk_node, walk, 0);
		walk->queries = list_delete_last(walk->queries);
		return false;
	}
	if (IsA(node, OpExpr))
		compared_all(walk, ((OpExpr *) node)->opno, ((OpExpr *) node)->args);
	if (IsA(node, ScalarArrayOpExpr) && ((ScalarArrayOpExpr *) node)->useOr)
		compared_all(walk, ((ScalarArrayOpExpr *) node)->opno, ((ScalarArrayOpExpr *) node)->args);
	return expression_tree_walker(node, walk_node, walk);
}

PG_FUNCTION_INFO_V1(synchro_joined_columns);

/* _joined_columns(function oid) TABLE (relation oid, attnum smallint) */
Datum
synchro_joined_columns(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Walk		walk = {0};
	HeapTuple	tuple;
	ListCell   *cell;

	InitMaterializedSRF(fcinfo, 0);
	walk.result = rsinfo->setResult;
	walk.desc = rsinfo->setDesc;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(PG_GETARG_OID(0)));
	if (!HeapTupleIsValid(tuple))
		return (Datum) 0;
	foreach(cell, funccheck_queries(tuple))
		walk_node(lfirst(cell), &walk);
	ReleaseSysCache(tuple);
	return (Datum) 0;
}
