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

typedef struct Bulk
{
	Relation	rel;
	TupleDesc	desc;
	EState	   *estate;
	ResultRelInfo *info;
	MemoryContext context;		/* of all this */
	MemoryContext rows;			/* of the rows that wait: what their values point to */
	TupleTableSlot *slots[BULK_ROWS];
	int			nslots;
	int			waiting;
	TupleTableSlot *found;		/* by bulk_find */
	TupleTableSlot *changed;
	Relation	key_index;
	IndexScanDesc scan;
	ScanKeyData keys[INDEX_MAX_KEYS];
} Bulk;

extern Bulk *bulk_open(Oid table);
extern void bulk_close(Bulk *bulk);

/* A slot for the next row; the caller fills in all values, then calls bulk_insert. */
extern TupleTableSlot *bulk_slot(Bulk *bulk);
extern void bulk_insert(Bulk *bulk);

/* Writes the waiting rows and forgets what they held; slots[0 .. returned number - 1] then have their tids. */
extern int	bulk_flush(Bulk *bulk);

/* The row with these values of the primary key, in bulk->found. */
extern bool bulk_find(Bulk *bulk, const Datum *key);

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

#endif							/* SYNCHRO_BULK_H */
