/*
 * funcreads.c
 *		What the parsed body of a function reads: relations, columns, and whether only its own row.
 *
 * The parser notes the columns of each reference for the check of privileges: whole rows, stars and merged columns of joins included.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "nodes/primnodes.h"
#if PG_VERSION_NUM >= 160000
#include "parser/parse_relation.h"
#endif
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "funccheck.h"

typedef struct Reads
{
	Oid			own;			/* view of the rows that the function is called for */
	AttrNumber	own_key;
	Tuplestorestate *result;
	TupleDesc	result_desc;
} Reads;

/* One row (relation, attnum, pinned); attnum 0: the whole row, NULL: no column. */
static void
put(const Reads *reads, Oid relation, int attnum, bool pinned)
{
	Datum		values[] = {ObjectIdGetDatum(relation), Int16GetDatum(attnum), BoolGetDatum(pinned)};
	bool		nulls[] = {false, attnum < 0, false};

	tuplestore_putvalues(reads->result, reads->result_desc, values, nulls);
}

static void
put_reference(const Reads *reads, Query *query, int varno)
{
	RangeTblEntry *rte = list_nth_node(RangeTblEntry, query->rtable, varno - 1);
#if PG_VERSION_NUM >= 160000
	Bitmapset  *columns = getRTEPermissionInfo(query->rteperminfos, rte)->selectedCols;
#else
	Bitmapset  *columns = rte->selectedCols;
#endif
	bool		pinned = rte->relid == reads->own && funcpin_is_pinned(query, varno, reads->own_key);
	int			column = -1;

	put(reads, rte->relid, -1, pinned);
	while ((column = bms_next_member(columns, column)) >= 0)
		put(reads, rte->relid, column + FirstLowInvalidHeapAttributeNumber, pinned);
}

static bool
walk(Node *node, Reads *reads)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
	{
		Query	   *query = (Query *) node;

		for (int varno = 1; varno <= list_length(query->rtable); varno++)
			if (list_nth_node(RangeTblEntry, query->rtable, varno - 1)->rtekind == RTE_RELATION)
				put_reference(reads, query, varno);
		return query_tree_walker(query, walk, reads, 0);
	}
	return expression_tree_walker(node, walk, reads);
}

PG_FUNCTION_INFO_V1(synchro_function_reads);

/* _function_reads(function oid, own_view oid, own_key smallint) TABLE (relation oid, attnum smallint, pinned boolean) */
Datum
synchro_function_reads(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Reads		reads = {PG_ARGISNULL(1) ? InvalidOid : PG_GETARG_OID(1), PG_ARGISNULL(2) ? 0 : PG_GETARG_INT16(2)};
	HeapTuple	function;

	InitMaterializedSRF(fcinfo, 0);
	reads.result = rsinfo->setResult;
	reads.result_desc = rsinfo->setDesc;
	if (PG_ARGISNULL(0))
		return (Datum) 0;
	function = SearchSysCache1(PROCOID, PG_GETARG_DATUM(0));
	if (HeapTupleIsValid(function))
	{
		ListCell   *cell;

		foreach(cell, funccheck_queries(function))
			(void) walk(lfirst(cell), &reads);
		ReleaseSysCache(function);
	}
	return (Datum) 0;
}
