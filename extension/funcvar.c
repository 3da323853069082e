/*
 * funcvar.c
 *		Variables in parsed queries.
 */
#include "postgres.h"

#include "nodes/primnodes.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "funccheck.h"

/* Without casts that change nothing (varchar to text). */
Node *
funcvar_strip(Node *node)
{
	while (node && IsA(node, RelabelType))
		node = (Node *) ((RelabelType *) node)->arg;
	return node;
}

/* The relation whose column the node is; NULL: it is something else. Columns of a join stand for those of its sides. */
RangeTblEntry *
funcvar_relation(List *queries, Node *node, int *varno, int *levelsup, AttrNumber *attnum)
{
	node = funcvar_strip(node);
	while (node && IsA(node, Var))
	{
		Var		   *var = (Var *) node;
		RangeTblEntry *rte;

		if (var->varlevelsup >= list_length(queries))
			return NULL;
		rte = rt_fetch(var->varno, list_nth_node(Query, queries, var->varlevelsup)->rtable);
		if (rte->rtekind == RTE_RELATION)
		{
			*varno = var->varno;
			*levelsup = var->varlevelsup;
			*attnum = var->varattno;
			return rte;
		}
		/* variables in the join's list belong to its own query */
		if (rte->rtekind != RTE_JOIN || var->varattno <= 0 || var->varlevelsup > 0)
			return NULL;
		node = funcvar_strip(list_nth(rte->joinaliasvars, var->varattno - 1));
	}
	return NULL;
}

/* Is this the operator by which values of the type are equal? */
bool
funcvar_is_equality(Oid operator, Oid type)
{
	TypeCacheEntry *entry = lookup_type_cache(type, TYPECACHE_EQ_OPR);

	return OidIsValid(operator) && operator == entry->eq_opr;
}
