/*
 * funcimages.c
 *		Which members of the row images an impact function reads.
 *
 * Images are JSON: a member that does not exist reads as NULL, for every row and for ever. So names must be constants that can be checked.
 * An image may pass through subqueries, VALUES, COALESCE, CASE and unnest(ARRAY[...]); what else is done with a whole one cannot be told.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "nodes/nodeFuncs.h"
#include "nodes/parsenodes.h"
#include "nodes/primnodes.h"
#include "parser/parsetree.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "funccheck.h"

typedef struct Walk
{
	List	   *queries;		/* from the outermost to the one being walked */
	Tuplestorestate *result;
	TupleDesc	desc;
} Walk;

static bool is_image(Node *node, Walk *walk);

static bool
column_is_image(Walk *walk, Query *query, AttrNumber attno)
{
	List	   *outer = walk->queries;
	bool		found = false;
	ListCell   *cell;

	walk->queries = lappend(list_copy(outer), query);
	if (query->setOperations)	/* the columns are named after the first member alone */
	{
		foreach(cell, query->rtable)
			found = found || (lfirst_node(RangeTblEntry, cell)->rtekind == RTE_SUBQUERY &&
							  column_is_image(walk, lfirst_node(RangeTblEntry, cell)->subquery, attno));
	}
	else
	{
		foreach(cell, query->targetList)
			found = found || ((attno == 0 || lfirst_node(TargetEntry, cell)->resno == attno) &&
							  is_image((Node *) lfirst_node(TargetEntry, cell)->expr, walk));
	}
	walk->queries = outer;
	return found;
}

static bool
any_is_image(List *nodes, Walk *walk)
{
	ListCell   *cell;

	foreach(cell, nodes)
		if (is_image(lfirst(cell), walk))
			return true;
	return false;
}

static bool
cte_is_image(Walk *walk, int level, RangeTblEntry *rte, AttrNumber attno)
{
	ListCell   *cell;

	level -= rte->ctelevelsup;
	if (rte->self_reference || level < 0)
		return true;			/* of a recursion: whatever it starts with */
	foreach(cell, list_nth_node(Query, walk->queries, level)->cteList)
	{
		CommonTableExpr *cte = lfirst_node(CommonTableExpr, cell);
		List	   *inner = walk->queries;
		bool		found;

		if (strcmp(cte->ctename, rte->ctename) != 0)
			continue;
		walk->queries = list_truncate(list_copy(inner), level + 1);
		found = column_is_image(walk, castNode(Query, cte->ctequery), attno);
		walk->queries = inner;
		return found;
	}
	return true;
}

/* A column, or with number 0 any, of what a query reads. */
static bool
var_is_image(Var *var, Walk *walk)
{
	int			level = list_length(walk->queries) - 1 - (int) var->varlevelsup;
	List	   *inner = walk->queries;
	RangeTblEntry *rte;
	bool		found = false;
	ListCell   *cell;

	if (level < 0 || var->varattno < 0)
		return false;
	rte = rt_fetch(var->varno, list_nth_node(Query, inner, level)->rtable);
	walk->queries = list_truncate(list_copy(inner), level + 1);
	switch (rte->rtekind)
	{
		case RTE_SUBQUERY:
			found = column_is_image(walk, rte->subquery, var->varattno);
			break;
		case RTE_VALUES:
			foreach(cell, rte->values_lists)
				found = found || (var->varattno == 0 ? any_is_image(lfirst(cell), walk)
								  : is_image(list_nth(lfirst(cell), var->varattno - 1), walk));
			break;
		case RTE_FUNCTION:
			foreach(cell, rte->functions)
				found = found || is_image(lfirst_node(RangeTblFunction, cell)->funcexpr, walk);
			break;
		case RTE_JOIN:
			found = var->varattno == 0 ? any_is_image(rte->joinaliasvars, walk) : is_image(list_nth(rte->joinaliasvars, var->varattno - 1), walk);
			break;
		case RTE_CTE:
			found = cte_is_image(walk, level, rte, var->varattno);
			break;
#if PG_VERSION_NUM >= 180000
		case RTE_GROUP:
			found = is_image(list_nth(rte->groupexprs, var->varattno - 1), walk);
			break;
#endif
		default:
			break;
	}
	walk->queries = inner;
	return found;
}

/* Is the value one of the images, or an array of them? */
static bool
is_image(Node *node, Walk *walk)
{
	ListCell   *cell;

	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_Param:
			return ((Param *) node)->paramkind == PARAM_EXTERN;
		case T_Var:
			return var_is_image((Var *) node, walk);
		case T_TargetEntry:
			return is_image((Node *) ((TargetEntry *) node)->expr, walk);
		case T_RelabelType:
			return is_image((Node *) ((RelabelType *) node)->arg, walk);
		case T_CoalesceExpr:
			return any_is_image(((CoalesceExpr *) node)->args, walk);
		case T_NullIfExpr:
			return is_image(linitial(((NullIfExpr *) node)->args), walk);
		case T_ArrayExpr:
			return any_is_image(((ArrayExpr *) node)->elements, walk);
		case T_FuncExpr:
			return ((FuncExpr *) node)->funcid == F_UNNEST_ANYARRAY && is_image(linitial(((FuncExpr *) node)->args), walk);
		case T_CaseExpr:
			foreach(cell, ((CaseExpr *) node)->args)
				if (is_image((Node *) lfirst_node(CaseWhen, cell)->result, walk))
					return true;
			return is_image((Node *) ((CaseExpr *) node)->defresult, walk);
		case T_SubscriptingRef:
			return ((SubscriptingRef *) node)->refcontainertype != JSONBOID && is_image((Node *) ((SubscriptingRef *) node)->refexpr, walk);
		case T_SubLink:
			switch (((SubLink *) node)->subLinkType)
			{
				case EXPR_SUBLINK:
				case ARRAY_SUBLINK:
					return column_is_image(walk, castNode(Query, ((SubLink *) node)->subselect), 1);
				default:
					return false;
			}
		default:
			return false;
	}
}

/* For a walk over the children of a node, some of which come as lists. */
static bool
child_is_image(Node *node, Walk *walk)
{
	return node && IsA(node, List) ? any_is_image((List *) node, walk) : is_image(node, walk);
}

/* One member's name; NULL: a use that cannot be told. */
static void
put(Walk *walk, text *name)
{
	Datum		values[] = {PointerGetDatum(name)};
	bool		nulls[] = {name == NULL};

	tuplestore_putvalues(walk->result, walk->desc, values, nulls);
}

/* The name in an expression that is to be one, or the first of a path of names. */
static void
put_name(Walk *walk, Node *node)
{
	Const	   *constant = (Const *) node;
	text	   *name = NULL;

	if (node && IsA(node, ArrayExpr) && ((ArrayExpr *) node)->elements != NIL)
		return put_name(walk, linitial(((ArrayExpr *) node)->elements));
	if (node && IsA(node, Const) && !constant->constisnull && constant->consttype == TEXTOID)
		name = DatumGetTextPP(constant->constvalue);
	else if (node && IsA(node, Const) && !constant->constisnull && constant->consttype == TEXTARRAYOID)
	{
		Datum	   *path;
		bool	   *nulls;
		int			n;

		deconstruct_array(DatumGetArrayTypeP(constant->constvalue), TEXTOID, -1, false, TYPALIGN_INT, &path, &nulls, &n);
		if (n > 0 && !nulls[0])
			name = DatumGetTextPP(path[0]);
	}
	put(walk, name);
}

/* A call, or an operator's, of which the first argument is an image, or more. */
static void
put_call(Walk *walk, Oid function, List *args)
{
	switch (function)
	{
		case F_JSONB_EQ:
		case F_JSONB_NE:
		case F_NUM_NULLS:
		case F_NUM_NONNULLS:
		case F_UNNEST_ANYARRAY:
			break;
		case F_JSONB_OBJECT_FIELD:
		case F_JSONB_OBJECT_FIELD_TEXT:
		case F_JSONB_EXISTS:
		case F_JSONB_EXTRACT_PATH:
		case F_JSONB_EXTRACT_PATH_TEXT:
			put_name(walk, lsecond(args));
			break;
		default:
			put(walk, NULL);
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
	switch (nodeTag(node))
	{
		case T_List:
		case T_TargetEntry:
		case T_FromExpr:
		case T_JoinExpr:
		case T_RangeTblFunction:
		case T_CommonTableExpr:
		case T_SetOperationStmt:
		case T_SubLink:
		case T_RelabelType:
		case T_CoalesceExpr:
		case T_NullIfExpr:
		case T_CaseExpr:
		case T_CaseWhen:
		case T_ArrayExpr:
		case T_NullTest:
			break;				/* the image passes through, or is looked at as a whole */
		case T_SubscriptingRef:
			if (((SubscriptingRef *) node)->refcontainertype == JSONBOID && is_image((Node *) ((SubscriptingRef *) node)->refexpr, walk))
				put_name(walk, linitial(((SubscriptingRef *) node)->refupperindexpr));
			break;
		case T_FuncExpr:
			if (any_is_image(((FuncExpr *) node)->args, walk))
				put_call(walk, ((FuncExpr *) node)->funcid, ((FuncExpr *) node)->args);
			break;
		case T_OpExpr:
		case T_DistinctExpr:
			if (any_is_image(((OpExpr *) node)->args, walk))
				put_call(walk, get_opcode(((OpExpr *) node)->opno), ((OpExpr *) node)->args);
			break;
		default:
			if (expression_tree_walker(node, child_is_image, walk))
				put(walk, NULL);
			break;
	}
	return expression_tree_walker(node, walk_node, walk);
}

PG_FUNCTION_INFO_V1(synchro_image_members);

/* _image_members(function oid) SETOF text */
Datum
synchro_image_members(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Walk		walk = {NIL};
	HeapTuple	function;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	walk.result = rsinfo->setResult;
	walk.desc = rsinfo->setDesc;
	function = SearchSysCache1(PROCOID, PG_GETARG_DATUM(0));
	if (HeapTupleIsValid(function))
	{
		ListCell   *cell;

		foreach(cell, funccheck_queries(function))
			(void) walk_node(lfirst(cell), &walk);
		ReleaseSysCache(function);
	}
	return (Datum) 0;
}
