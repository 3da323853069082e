/*
 * bulk.c
 *		Many rows into one table of the extension, without an executor's work for each.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "bulk.h"
#include "compat.h"

Bulk *
bulk_open(Oid table)
{
	Bulk	   *bulk = palloc0(sizeof(Bulk));

	bulk->rel = table_open(table, RowExclusiveLock);
	/* not reference-counted: each slot would pin it */
	bulk->desc = CreateTupleDescCopyConstr(RelationGetDescr(bulk->rel));
	bulk->estate = CreateExecutorState();
	bulk->info = makeNode(ResultRelInfo);
	InitResultRelInfo(bulk->info, bulk->rel, 0, NULL, 0);
	ExecOpenIndices(bulk->info, false);
	bulk->context = CurrentMemoryContext;
	bulk->rows = AllocSetContextCreate(CurrentMemoryContext, "synchro rows", ALLOCSET_DEFAULT_SIZES);
	return bulk;
}

void
bulk_close(Bulk *bulk)
{
	Assert(bulk->waiting == 0);
	bulk_end_search(bulk);
	if (bulk->found)
		ExecDropSingleTupleTableSlot(bulk->found);
	if (bulk->changed)
		ExecDropSingleTupleTableSlot(bulk->changed);
	for (int i = 0; i < bulk->nslots; i++)
		ExecDropSingleTupleTableSlot(bulk->slots[i]);
	ExecCloseIndices(bulk->info);
	FreeExecutorState(bulk->estate);
	table_close(bulk->rel, NoLock);
}

/* A slot that outlives the rows. */
static TupleTableSlot *
make_slot(Bulk *bulk, bool reads)
{
	MemoryContext caller = MemoryContextSwitchTo(bulk->context);
	TupleTableSlot *slot = reads ? table_slot_create(bulk->rel, NULL) : MakeSingleTupleTableSlot(bulk->desc, &TTSOpsHeapTuple);

	MemoryContextSwitchTo(caller);
	return slot;
}

TupleTableSlot *
bulk_slot(Bulk *bulk)
{
	Assert(bulk->waiting < BULK_ROWS);
	if (bulk->waiting == bulk->nslots)
		bulk->slots[bulk->nslots++] = make_slot(bulk, false);
	return ExecClearTuple(bulk->slots[bulk->waiting]);
}

void
bulk_insert(Bulk *bulk, bool replaces)
{
	bulk->replaces[bulk->waiting] = replaces;
	ExecStoreVirtualTuple(bulk->slots[bulk->waiting++]);
}

/* Adds the waiting rows to one index: in one index at a time, they go to pages that have just been touched. */
static void
insert_into_index(Bulk *bulk, int which)
{
	Relation	index = bulk->info->ri_IndexRelationDescs[which];
	IndexInfo  *info = bulk->info->ri_IndexRelationInfo[which];
	ExprContext *econtext = GetPerTupleExprContext(bulk->estate);
	Datum		values[INDEX_MAX_KEYS];
	bool		nulls[INDEX_MAX_KEYS];

	if (!info->ii_ReadyForInserts)
		return;
	if (info->ii_Predicate != NIL && info->ii_PredicateState == NULL)
		info->ii_PredicateState = ExecPrepareQual(info->ii_Predicate, bulk->estate);
	for (int i = 0; i < bulk->waiting; i++)
	{
		TupleTableSlot *slot = bulk->slots[i];
		bool		unique = info->ii_Unique && !bulk->replaces[i];

		econtext->ecxt_scantuple = slot;
		if (info->ii_PredicateState && !ExecQual(info->ii_PredicateState, econtext))
			continue;
		FormIndexDatum(info, slot, bulk->estate, values, nulls);
		/* The index would raise the error with the key, which has no place in a log. */
		if (!index_insert(index, values, nulls, &slot->tts_tid, bulk->rel, unique ? UNIQUE_CHECK_PARTIAL : UNIQUE_CHECK_NO, false, info) && unique)
			ereport(ERROR, (errcode(ERRCODE_UNIQUE_VIOLATION), errmsg("a row with this key is there already"),
							errtableconstraint(bulk->rel, RelationGetRelationName(index))));
	}
	ResetExprContext(econtext);
}

int
bulk_flush(Bulk *bulk)
{
	int			n = bulk->waiting;
	MemoryContext caller = MemoryContextSwitchTo(bulk->rows);

	CHECK_FOR_INTERRUPTS();
	if (n > 0)
		table_multi_insert(bulk->rel, bulk->slots, n, GetCurrentCommandId(true), 0, NULL);
	for (int i = 0; i < bulk->info->ri_NumIndices; i++)
		insert_into_index(bulk, i);
	MemoryContextSwitchTo(caller);
	MemoryContextReset(bulk->rows);
	bulk->waiting = 0;
	return n;
}

void
bulk_prepare_found(Bulk *bulk)
{
	if (bulk->found == NULL)
		bulk->found = make_slot(bulk, true);
}

bool
bulk_fetch(Bulk *bulk, ItemPointer tid)
{
	bulk_prepare_found(bulk);
	return table_tuple_fetch_row_version(bulk->rel, tid, GetActiveSnapshot(), bulk->found);
}

TupleTableSlot *
bulk_changed(Bulk *bulk)
{
	if (bulk->changed == NULL)
		bulk->changed = make_slot(bulk, false);
	slot_getallattrs(bulk->found);
	ExecClearTuple(bulk->changed);
	memcpy(bulk->changed->tts_values, bulk->found->tts_values, sizeof(Datum) * bulk->desc->natts);
	memcpy(bulk->changed->tts_isnull, bulk->found->tts_isnull, sizeof(bool) * bulk->desc->natts);
	return bulk->changed;
}

bool
bulk_delete(Bulk *bulk)
{
	TM_FailureData failure;
	TM_Result	result = table_tuple_delete(bulk->rel, &bulk->found->tts_tid, GetCurrentCommandId(true), GetActiveSnapshot(),
											InvalidSnapshot, true, &failure, false);

	ExecClearTuple(bulk->found);
	if (result != TM_Ok && result != TM_Deleted)
		elog(ERROR, "a row was changed by somebody else");
	return result == TM_Ok;
}

bool
bulk_update(Bulk *bulk, ItemPointer tid)
{
	SynUpdateIndexes indexes;
	TM_FailureData failure;
	LockTupleMode mode;
	TM_Result	result;

	ExecStoreVirtualTuple(bulk->changed);
	result = table_tuple_update(bulk->rel, &bulk->found->tts_tid, bulk->changed, GetCurrentCommandId(true), GetActiveSnapshot(),
								InvalidSnapshot, true, &failure, &mode, &indexes);
	if (result == TM_Deleted)
	{
		ExecClearTuple(bulk->found);
		return false;
	}
	if (result != TM_Ok)
		elog(ERROR, "a row was changed by somebody else");
	if (syn_updates_indexes(indexes))
		list_free(syn_insert_index_tuples(bulk->info, bulk->changed, bulk->estate, true, syn_updates_summaries(indexes)));
	ResetPerTupleExprContext(bulk->estate);
	*tid = bulk->changed->tts_tid;
	ExecClearTuple(bulk->found);
	return true;
}
