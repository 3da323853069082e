/*
 * bulk_find.c
 *		Rows of a table of the extension by its primary key.
 *
 * A descent through the index costs more than anything else that is done with an entry but adding it to an index. Entries come in the
 * order of their key, and many lie side by side when a whole family of rows moves; then one scan finds them all on its way. To begin such
 * a scan costs more than a descent for one row, because it reads a page to its end, so it is begun only while that pays.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/itup.h"
#include "access/nbtree.h"
#include "access/relscan.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"

#include "bulk.h"
#include "compat.h"

/* So many items are passed on the way to a row before a descent is cheaper. */
#define WALK_STEPS 32

/* So many rows must have been found on the way, or the next ones are looked for one by one: more of them each time, at most so many. */
#define WALK_WORTH 2
#define FIRST_PAUSE 4
#define LAST_PAUSE 64

static void
find_key_index(Bulk *bulk)
{
	for (int i = 0; i < bulk->info->ri_NumIndices; i++)
		if (bulk->info->ri_IndexRelationDescs[i]->rd_index->indisprimary)
			bulk->key_index = bulk->info->ri_IndexRelationDescs[i];
	if (bulk->key_index == NULL)
		elog(ERROR, "table %s has no primary key", RelationGetRelationName(bulk->rel));
	bulk->nkeys = IndexRelationGetNumberOfKeyAttributes(bulk->key_index);
	bulk_prepare_found(bulk);
}

static void
init_key(Bulk *bulk, ScanKey key, int column, StrategyNumber strategy)
{
	Oid			type = bulk->key_index->rd_opcintype[column];
	Oid			operator = get_opfamily_member(bulk->key_index->rd_opfamily[column], type, type, strategy);

	ScanKeyInit(key, column + 1, strategy, get_opcode(operator), (Datum) 0);
	key->sk_collation = bulk->key_index->rd_indcollation[column];
}

bool
bulk_find(Bulk *bulk, const Datum *key)
{
	MemoryContext caller = MemoryContextSwitchTo(bulk->context);	/* a scan remembers things when it first needs to */
	bool		found;

	if (bulk->scan == NULL)
	{
		find_key_index(bulk);
		for (int i = 0; i < bulk->nkeys; i++)
			init_key(bulk, &bulk->keys[i], i, BTEqualStrategyNumber);
		bulk->scan = syn_index_beginscan(bulk->rel, bulk->key_index, GetActiveSnapshot(), bulk->nkeys);
	}
	for (int i = 0; i < bulk->nkeys; i++)
		bulk->keys[i].sk_argument = key[i];
	index_rescan(bulk->scan, bulk->keys, bulk->nkeys, NULL, 0);
	found = index_getnext_slot(bulk->scan, ForwardScanDirection, bulk->found);
	MemoryContextSwitchTo(caller);
	return found;
}

static void
begin_walk(Bulk *bulk)
{
	BulkWalk   *walk = &bulk->walk;
	int			last;

	find_key_index(bulk);
	last = bulk->nkeys - 1;
	for (int i = 0; i < last; i++)
	{
		if (!TupleDescAttr(RelationGetDescr(bulk->key_index), i)->attbyval)
			elog(ERROR, "the primary key of table %s is not one to walk along", RelationGetRelationName(bulk->rel));
		init_key(bulk, &walk->keys[i], i, BTEqualStrategyNumber);
	}
	init_key(bulk, &walk->keys[last], last, BTGreaterEqualStrategyNumber);
	walk->compare = index_getprocinfo(bulk->key_index, last + 1, BTORDER_PROC);
	walk->scan = syn_index_beginscan(bulk->rel, bulk->key_index, GetActiveSnapshot(), bulk->nkeys);
	walk->scan->xs_want_itup = true;
	walk->next_pause = walk->pause = FIRST_PAUSE;
}

static int
compare(Bulk *bulk, Datum a, Datum b)
{
	return DatumGetInt32(FunctionCall2Coll(bulk->walk.compare, bulk->walk.keys[bulk->nkeys - 1].sk_collation, a, b));
}

static void
step(BulkWalk *walk)
{
	walk->at = index_getnext_tid(walk->scan, ForwardScanDirection) ? WALK_ITEM : WALK_END;
}

/* Whether the key is not before what the walk has passed. */
static bool
is_ahead(Bulk *bulk, const Datum *key)
{
	BulkWalk   *walk = &bulk->walk;

	if (walk->at == WALK_NOWHERE)
		return false;
	for (int i = 0; i < bulk->nkeys - 1; i++)
		if (walk->keys[i].sk_argument != key[i])
			return false;
	return compare(bulk, walk->last, key[bulk->nkeys - 1]) <= 0;
}

/* Goes on to the row. False: it is too far. */
static bool
walk_to(Bulk *bulk, Datum key, bool *found)
{
	BulkWalk   *walk = &bulk->walk;
	int			diff = -1;

	*found = false;
	for (int steps = 0; walk->at == WALK_ITEM; step(walk))
	{
		bool		isnull;

		diff = compare(bulk, index_getattr(walk->scan->xs_itup, bulk->nkeys, walk->scan->xs_itupdesc, &isnull), key);
		if (diff > 0)
			return true;
		if (diff == 0 && index_fetch_heap(walk->scan, bulk->found)) /* else one of its earlier versions */
		{
			*found = true;
			return true;
		}
		if (diff < 0 && ++steps > WALK_STEPS)
			return false;
	}
	return true;
}

/* A value of the key's last column that outlives the rows. */
static void
keep(Bulk *bulk, Datum *to, Datum value)
{
	int			column = bulk->key_index->rd_index->indkey.values[bulk->nkeys - 1];
	Form_pg_attribute att = TupleDescAttr(bulk->desc, column - 1);

	if (!att->attbyval && DatumGetPointer(*to) != NULL)
		pfree(DatumGetPointer(*to));
	*to = datumCopy(value, att->attbyval, att->attlen);
}

/* Begins a walk at the row. */
static bool
descend(Bulk *bulk, const Datum *key)
{
	BulkWalk   *walk = &bulk->walk;
	int			last = bulk->nkeys - 1;
	bool		found;

	for (int i = 0; i < last; i++)
		walk->keys[i].sk_argument = key[i];
	keep(bulk, &walk->keys[last].sk_argument, key[last]);
	index_rescan(walk->scan, walk->keys, bulk->nkeys, NULL, 0);
	step(walk);
	(void) walk_to(bulk, key[last], &found);
	return found;
}

static bool
find_next(Bulk *bulk, const Datum *key)
{
	BulkWalk   *walk = &bulk->walk;
	bool		found;

	if (walk->pause > 0)
	{
		walk->pause--;
		return bulk_find(bulk, key);
	}
	if (is_ahead(bulk, key) && walk_to(bulk, key[bulk->nkeys - 1], &found))
		walk->found++;
	else if (walk->at == WALK_NOWHERE || walk->found >= WALK_WORTH)
	{
		if (walk->found >= WALK_WORTH)
			walk->next_pause = FIRST_PAUSE;
		walk->found = 0;
		found = descend(bulk, key);
	}
	else
	{
		walk->at = WALK_NOWHERE;
		walk->pause = walk->next_pause;
		walk->next_pause = Min(2 * walk->next_pause, LAST_PAUSE);
		return bulk_find(bulk, key);
	}
	keep(bulk, &walk->last, key[bulk->nkeys - 1]);
	return found;
}

bool
bulk_find_next(Bulk *bulk, const Datum *key)
{
	MemoryContext caller = MemoryContextSwitchTo(bulk->context);	/* as above */
	bool		found;

	if (bulk->walk.scan == NULL)
		begin_walk(bulk);
	found = find_next(bulk, key);
	MemoryContextSwitchTo(caller);
	return found;
}

void
bulk_end_search(Bulk *bulk)
{
	if (bulk->scan)
		index_endscan(bulk->scan);
	if (bulk->walk.scan)
		index_endscan(bulk->walk.scan);
}
