/*
 * progress.c
 *		Waiting, inside a function, until the worker has materialized up to a place in the WAL.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/namespace.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/lsyscache.h"
#include "utils/pg_lsn.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "errcodes.h"

#define FIRST_PAUSE_MS 1
#define LONGEST_PAUSE_MS 20

/* progress.seen_lsn as committed now, whatever snapshot the transaction has. */
static XLogRecPtr
seen_lsn(Oid relid)
{
	Relation	rel = table_open(relid, AccessShareLock);
	AttrNumber	attnum = get_attnum(relid, "seen_lsn");
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	TableScanDesc scan = table_beginscan(rel, snapshot, 0, NULL);
	HeapTuple	tuple = heap_getnext(scan, ForwardScanDirection);
	XLogRecPtr	lsn = InvalidXLogRecPtr;
	bool		isnull;

	if (tuple != NULL)
		lsn = DatumGetLSN(heap_getattr(tuple, attnum, RelationGetDescr(rel), &isnull));
	table_endscan(scan);
	UnregisterSnapshot(snapshot);
	table_close(rel, AccessShareLock);
	return lsn;
}

PG_FUNCTION_INFO_V1(synchro_await_progress);

/* _await_progress(lsn pg_lsn, timeout_ms int) boolean: false when the time was over first. */
Datum
synchro_await_progress(PG_FUNCTION_ARGS)
{
	XLogRecPtr	target = PG_GETARG_LSN(0);
	int			timeout = PG_GETARG_INT32(1);
	TimestampTz deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), timeout);
	Oid			relid = get_relname_relid("progress", get_namespace_oid("synchro", false));
	long		pause = FIRST_PAUSE_MS;

	if (timeout < 0)
		ereport(ERROR, (errcode(SYNCHRO_ERR_INVALID_PARAMETER), errmsg("a timeout must not be negative")));
	for (;;)
	{
		long		left;

		CHECK_FOR_INTERRUPTS();
		if (seen_lsn(relid) >= target)
			PG_RETURN_BOOL(true);
		left = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), deadline);
		if (left <= 0)
			PG_RETURN_BOOL(false);
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, Min(pause, left), PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		pause = Min(pause * 2, LONGEST_PAUSE_MS);
	}
}
