/*
 * push_guard.c
 *		No deferred work of others inside a push, none of it left behind.
 *
 * A deferred trigger event runs at commit, as whatever role then is current. Before a push such events are somebody else's, and
 * SET CONSTRAINTS ALL IMMEDIATE would run them as synchro_writer; after it they would be the application's code running as the
 * adapter. The same holds for a cursor WITH HOLD, whose query runs at commit.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/spi.h"

#include "errcodes.h"
#include "push.h"

PG_FUNCTION_INFO_V1(synchro_push_guard);

static bool
anything_deferred(void)
{
	uint64		n = push_exec("SELECT DISTINCT t.tgrelid FROM pg_catalog.pg_trigger t WHERE t.tgdeferrable", 0, NULL, NULL, NULL);
	SPITupleTable *relations = SPI_tuptable;
	bool		found = false;

	for (uint64 i = 0; i < n && !found; i++)
		found = AfterTriggerPendingOnRel(DatumGetObjectId(push_column(i, 1, NULL)));
	SPI_freetuptable(relations);
	return found;
}

static bool
anything_held(void)
{
	bool		found = push_exec("SELECT FROM pg_catalog.pg_cursors c WHERE c.is_holdable AND c.creation_time"
								  " OPERATOR(pg_catalog.>=) pg_catalog.transaction_timestamp()", 0, NULL, NULL, NULL) > 0;

	SPI_freetuptable(SPI_tuptable);
	return found;
}

/* Needs an SPI connection. */
void
push_require_nothing_deferred(const char *message)
{
	if (anything_deferred() || anything_held())
		ereport(ERROR,
				(errcode(SYNCHRO_ERR_WRONG_TRANSACTION_STATE),
				 errmsg("%s", message),
				 errhint("Constraint triggers and cursors WITH HOLD must not be pending at the beginning or at the end of a push.")));
}

/* _push_guard(): the transaction must be READ COMMITTED and have nothing deferred. One without a write has nothing. */
Datum
synchro_push_guard(PG_FUNCTION_ARGS)
{
	if (XactIsoLevel != XACT_READ_COMMITTED && XactIsoLevel != XACT_READ_UNCOMMITTED)
		ereport(ERROR,
				(errcode(SYNCHRO_ERR_WRONG_TRANSACTION_STATE),
				 errmsg("push needs isolation level read committed")));
	if (!TransactionIdIsValid(GetTopTransactionIdIfAny()))
		PG_RETURN_VOID();
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	push_require_nothing_deferred("push needs a transaction without deferred trigger events");
	SPI_finish();
	PG_RETURN_VOID();
}
