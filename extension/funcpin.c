/*
 * funcpin.c
 *		Does a query look only at the row that its function was called for?
 *
 * It does when "key = $1" is a condition that every row of the relation must pass to have any effect on this query level: in WHERE, or in the
 * ON of a join that does not keep the relation's other rows. Anything cleverer counts as unpinned, and needs a declaration.
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"
#include "nodes/primnodes.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "funccheck.h"

typedef struct Pin
{
	Query	   *query;
	int			varno;
	AttrNumber	key;
} Pin;

/* Without casts that change nothing (varchar to text). */
static Node *
strip(Node *node)
{
	while (node && IsA(node, RelabelType))
		node = (Node *) ((RelabelType *) node)->arg;
	return node;
}

/* Columns of a join stand for those of its sides. */
static bool
is_key(const Pin *pin, Node *node)
{
	node = strip(node);
	while (node && IsA(node, Var) && ((Var *) node)->varlevelsup == 0)
	{
		Var		   *var = (Var *) node;
		RangeTblEntry *rte = rt_fetch(var->varno, pin->query->rtable);

		if (rte->rtekind != RTE_JOIN || var->varattno <= 0)
			return var->varno == pin->varno && var->varattno == pin->key;
		node = strip(list_nth(rte->joinaliasvars, var->varattno - 1));
	}
	return false;
}

static bool
is_row_key(Node *node)
{
	node = strip(node);
	return node && IsA(node, Param) && ((Param *) node)->paramkind == PARAM_EXTERN && ((Param *) node)->paramid == 1;
}

/* A condition, or one of several that must all hold, is key = $1. */
static bool
quals_pin(const Pin *pin, Node *quals)
{
	if (quals == NULL)
		return false;
	if (IsA(quals, List) || is_andclause(quals))
	{
		ListCell   *cell;

		foreach(cell, IsA(quals, List) ? (List *) quals : ((BoolExpr *) quals)->args)
		{
			if (quals_pin(pin, lfirst(cell)))
				return true;
		}
		return false;
	}
	if (IsA(quals, OpExpr) && list_length(((OpExpr *) quals)->args) == 2)
	{
		OpExpr	   *op = (OpExpr *) quals;
		Node	   *left = linitial(op->args);
		Node	   *right = lsecond(op->args);

		return ((is_key(pin, left) && is_row_key(right)) || (is_key(pin, right) && is_row_key(left))) &&
			op->opno == lookup_type_cache(exprType(left), TYPECACHE_EQ_OPR)->eq_opr &&
			(!OidIsValid(op->inputcollid) || get_collation_isdeterministic(op->inputcollid));
	}
	return false;
}

static bool
contains(const Pin *pin, Node *node)
{
	ListCell   *cell;

	if (IsA(node, RangeTblRef))
		return ((RangeTblRef *) node)->rtindex == pin->varno;
	if (IsA(node, JoinExpr))
		return contains(pin, ((JoinExpr *) node)->larg) || contains(pin, ((JoinExpr *) node)->rarg);
	foreach(cell, castNode(FromExpr, node)->fromlist)
	{
		if (contains(pin, lfirst(cell)))
			return true;
	}
	return false;
}

/* Of a part of the join tree that contains the relation. */
static bool
jointree_pins(const Pin *pin, Node *node)
{
	if (IsA(node, FromExpr))
	{
		FromExpr   *from = (FromExpr *) node;
		ListCell   *cell;

		if (quals_pin(pin, from->quals))
			return true;
		foreach(cell, from->fromlist)
		{
			if (contains(pin, lfirst(cell)))
				return jointree_pins(pin, lfirst(cell));
		}
	}
	else if (IsA(node, JoinExpr))
	{
		JoinExpr   *join = (JoinExpr *) node;
		bool		left = contains(pin, join->larg);

		/* an outer join keeps the rows of its outer side whatever the condition says */
		if ((join->jointype == JOIN_INNER || (join->jointype == JOIN_LEFT && !left) || (join->jointype == JOIN_RIGHT && left)) &&
			quals_pin(pin, join->quals))
			return true;
		return jointree_pins(pin, left ? join->larg : join->rarg);
	}
	return false;
}

bool
funcpin_is_pinned(Query *query, int varno, AttrNumber key)
{
	Pin			pin = {query, varno, key};

	return query->jointree && contains(&pin, (Node *) query->jointree) && jointree_pins(&pin, (Node *) query->jointree);
}
