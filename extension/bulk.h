/*
 * bulk.h
 *		Many rows into one table of the extension, without an executor's work for each.
 *
 * No trigger, constraint, policy or right takes part: only for tables of ours that have none, by functions that only their writer
 * may execute.
 */
#ifndef SYNCHRO_BULK_H
#define SYNCHRO_BULK_H

#include "postgres.h"

#include "access/genam.h"
#include "access/relscan.h"
#include "access/skey.h"
#include "nodes/execnodes.h"
#include "utils/rel.h"

/* So many rows may wait, and so much may they hold. */
#define BULK_ROWS 500
#define BULK_BYTES (1024 * 1024)

/* Rows in the order of the primary key, found without a descent through the index for each (bulk_find.c). */
typedef struct BulkWalk
{
	IndexScanDesc scan;			/* of the rows with the same values in all columns but the last, from a value of that one on */
	ScanKeyData keys[INDEX_MAX_KEYS];
	FmgrInfo   *compare;		/* of the last column */
	Datum		last;			/* its value that was looked for last; what is before has been passed */
	enum
	{
		WALK_NOWHERE, WALK_ITEM, WALK_END
	}			at;
	int			found;			/* searches since the last descent that needed none */
	int			pause;			/* searches that are not worth a walk */
	int			next_pause;
} BulkWalk;

typedef struct Bulk
{
	Relation	rel;
	TupleDesc	desc;
	EState	   *estate;
	ResultRelInfo *info;
	MemoryContext context;		/* of all this */
	MemoryContext rows;			/* of the rows that wait: what their values point to */
	TupleTableSlot *slots[BULK_ROWS];
	bool		replaces[BULK_ROWS];
	int			nslots;
	int			waiting;
	TupleTableSlot *found;		/* by bulk_find */
	TupleTableSlot *changed;
	Relation	key_index;
	int			nkeys;
	IndexScanDesc scan;
	ScanKeyData keys[INDEX_MAX_KEYS];
	BulkWalk	walk;
} Bulk;

extern Bulk *bulk_open(Oid table);
extern void bulk_close(Bulk *bulk);

/*
 * A slot for the next row; the caller fills in all values, then calls bulk_insert. It replaces another one: bulk_delete has just
 * deleted the row with the same key, and unique indexes need not be searched for one.
 */
extern TupleTableSlot *bulk_slot(Bulk *bulk);
extern void bulk_insert(Bulk *bulk, bool replaces);

/* Writes the waiting rows and forgets what they held; slots[0 .. returned number - 1] then have their tids. */
extern int	bulk_flush(Bulk *bulk);

/* The row with these values of the primary key, in bulk->found. */
extern bool bulk_find(Bulk *bulk, const Datum *key);

/* The same; costs less when it is called with ascending keys of which many are close to each other. */
extern bool bulk_find_next(Bulk *bulk, const Datum *key);

/* The row at a tid, in bulk->found. */
extern bool bulk_fetch(Bulk *bulk, ItemPointer tid);

/* A copy of bulk->found to change. */
extern TupleTableSlot *bulk_changed(Bulk *bulk);

/*
 * Replaces bulk->found by bulk->changed; *tid: where it is now. False: somebody has deleted it meanwhile; that is waited for.
 */
extern bool bulk_update(Bulk *bulk, ItemPointer tid);

/* Deletes bulk->found. False as above. */
extern bool bulk_delete(Bulk *bulk);

/* Between bulk.c and bulk_find.c. */
extern void bulk_prepare_found(Bulk *bulk);
extern void bulk_end_search(Bulk *bulk);

#endif							/* SYNCHRO_BULK_H */
