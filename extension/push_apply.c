/*
 * push_apply.c
 *		Executes the mutations of one push (docs/push.md).
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/tuplestore.h"

#include "errcodes.h"
#include "fence.h"
#include "push.h"

PG_FUNCTION_INFO_V1(synchro_push_apply);

/* Time that a push may spend waiting for capture, and rounds it may need when others keep changing its rows. */
#define PUSH_WAIT_MS 5000
#define PUSH_ROUNDS 8

/* Settings that synchro_push has of its own and the application's code must not see. */
static const char *const session_settings[] = {"search_path", "jit", "plan_cache_mode", "enable_seqscan"};

/* A round in a subtransaction of its own, which an error must not leave open: callers with an exception block end theirs. */
static PushRound
run_round(PushBatch *batch)
{
	MemoryContext caller = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	volatile PushRound result = PUSH_ROUND_STALE;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(caller);
	PG_TRY();
	{
		result = push_round(batch);
		if (result == PUSH_ROUND_KEEP)
			ReleaseCurrentSubTransaction();
		else
			RollbackAndReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(caller);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(caller);
		CurrentResourceOwner = owner;
		ReThrowError(error);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(caller);
	CurrentResourceOwner = owner;
	return result;
}

static void
execute_rounds(PushBatch *batch)
{
	TimestampTz deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), PUSH_WAIT_MS);

	for (int i = 0; i < PUSH_ROUNDS; i++)
	{
		push_establish_versions(batch, deadline);
		if (run_round(batch) != PUSH_ROUND_STALE)
			return;
	}
	ereport(ERROR,
			(errcode(SYNCHRO_ERR_TEMPORARY_UNAVAILABLE),
			 errmsg("the rows of the push kept changing")));
}

static void
set_text(Datum *value, bool *null, const char *text)
{
	*null = text == NULL;
	if (text)
		*value = CStringGetTextDatum(text);
}

/* One row per executed mutation: ord, code, message, server_version, server_row, row_digest. */
static void
return_outcomes(PushBatch *batch, ReturnSetInfo *result)
{
	for (int i = 0; i < batch->nmutations; i++)
	{
		PushMutation *m = &batch->mutations[i];
		Datum		values[6];
		bool		nulls[6] = {false};

		values[0] = Int32GetDatum(m->ord);
		set_text(&values[1], &nulls[1], m->code);
		set_text(&values[2], &nulls[2], m->message);
		set_text(&values[3], &nulls[3], m->server_version);
		set_text(&values[4], &nulls[4], m->server_row);
		values[5] = PointerGetDatum(m->row_digest);
		nulls[5] = m->row_digest == NULL;
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
}

static void
apply(PushBatch *batch, const JcsNode *mutations, ArrayType *rel_nos, ReturnSetInfo *result)
{
	Datum	   *elems;
	bool	   *skip;
	int		   *numbers;
	int			n;

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	MemoryContextSwitchTo(batch->mcxt);
	deconstruct_array(rel_nos, INT4OID, sizeof(int32), true, TYPALIGN_INT, &elems, &skip, &n);
	numbers = palloc(sizeof(int) * Max(n, 1));
	for (int i = 0; i < n; i++)
		numbers[i] = skip[i] ? 0 : DatumGetInt32(elems[i]);
	push_prepare(batch, mutations, numbers, skip, n);
	if (batch->nmutations > 0)
	{
		execute_rounds(batch);
		fence_pushed_store();
		push_require_nothing_deferred("the application left deferred work behind in a push");
	}
	return_outcomes(batch, result);
	SPI_finish();
}

/*
 * _push_apply(client_no bigint, user_id text, claims jsonb, schema_version bigint, atomic boolean, request text, rel_nos int[])
 *
 * The application's code runs under the settings that the session began with, as it would in a direct write; every statement of
 * ours is qualified. The push context ends here, whatever happens.
 */
Datum
synchro_push_apply(PG_FUNCTION_ARGS)
{
	PushBatch	batch = {0};
	int			nest;
	bool		temp_before;
	bool		temp_used;

	for (int i = 0; i < PG_NARGS(); i++)
		if (PG_ARGISNULL(i) && i != 2)
			ereport(ERROR, (errcode(SYNCHRO_ERR_INVALID_PARAMETER), errmsg("an argument is missing")));
	InitMaterializedSRF(fcinfo, 0);
	batch.mcxt = AllocSetContextCreate(CurrentMemoryContext, "synchro push", ALLOCSET_DEFAULT_SIZES);
	batch.client_no = PG_GETARG_INT64(0);
	batch.user_id = text_to_cstring(PG_GETARG_TEXT_PP(1));
	batch.claims = PG_ARGISNULL(2) ? NULL : PG_GETARG_JSONB_P(2);
	batch.schema_version = PG_GETARG_INT64(3);
	batch.atomic = PG_GETARG_BOOL(4);
	batch.writer = get_role_oid("synchro_writer", false);

	nest = NewGUCNestLevel();
	for (int i = 0; i < lengthof(session_settings); i++)
		(void) set_config_option(session_settings[i], GetConfigOptionResetString(session_settings[i]), PGC_USERSET, PGC_S_SESSION,
								 GUC_ACTION_SAVE, true, 0, false);
	(void) set_config_option("row_security", "on", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	(void) set_config_option("synchro.user_id", batch.user_id, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	temp_before = push_temp_enter();
	fence_push_begin(batch.client_no, batch.user_id, batch.claims);
	PG_TRY();
	{
		apply(&batch, push_mutations(PG_GETARG_TEXT_PP(5)), PG_GETARG_ARRAYTYPE_P(6), (ReturnSetInfo *) fcinfo->resultinfo);
	}
	PG_FINALLY();
	{
		fence_push_end();
		temp_used = push_temp_leave(temp_before);
	}
	PG_END_TRY();
	if (temp_used)
		ereport(ERROR,
				(errcode(SYNCHRO_ERR_WRONG_TRANSACTION_STATE),
				 errmsg("the application must not use temporary objects in a push")));
	AtEOXact_GUC(false, nest);
	MemoryContextDelete(batch.mcxt);
	return (Datum) 0;
}
