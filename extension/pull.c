/*
 * pull.c
 *		POST /sync/pull (sql/functions/synchro_pull.sql): the short way, or else the long one.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

#include "compat.h"
#include "errcodes.h"
#include "pull_state.h"

#define HTTP_OK 200

PG_FUNCTION_INFO_V1(synchro_pull);
PG_FUNCTION_INFO_V1(synchro_pull_quick);

/* The answer, as if nothing had been tried when a wire error comes up: then the long way meets and tells it. */
static bool
answer_guarded(SynPull *pull, text **body, Datum *waits)
{
	MemoryContext caller = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	volatile bool answered = false;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(caller);
	PG_TRY();
	{
		answered = syn_pull_answer(pull, body, waits);
		ReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(caller);
		CurrentResourceOwner = owner;
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
		if (ERRCODE_TO_CATEGORY(error->sqlerrcode) != ERRCODE_TO_CATEGORY(SYNCHRO_ERR_SYNC_INTEGRITY_FAILURE))
			ReThrowError(error);
		answered = false;
	}
	PG_END_TRY();
	return answered;
}

static bool
answer_quickly(FunctionCallInfo fcinfo, text **body, Datum *waits)
{
	SynPull		pull = {0};

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || !IsolationUsesXactSnapshot() ||
		!syn_pull_in_order(&pull, PG_GETARG_TEXT_PP(0), PG_GETARG_TEXT_PP(1)))
		return false;
	return syn_pull_is_quiet(&pull) ? syn_pull_answer(&pull, body, waits) : answer_guarded(&pull, body, waits);
}

/* What _pull_answer says. */
static void
answer_slowly(FunctionCallInfo fcinfo, Datum *values, bool *nulls)
{
	static SPIPlanPtr plan;		/* kept for the session */
	MemoryContext caller = CurrentMemoryContext;
	Datum		args[2] = {PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)};
	char		absent[3] = {PG_ARGISNULL(0) ? 'n' : ' ', PG_ARGISNULL(1) ? 'n' : ' '};

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	if (plan == NULL)
	{
		SPIPlanPtr	made = SPI_prepare("SELECT a.status, a.body, a.wait_on FROM synchro._pull_answer($1, $2) a", 2, (Oid[]) {TEXTOID, TEXTOID});

		if (made == NULL || SPI_keepplan(made) != 0)
			elog(ERROR, "could not prepare a statement of a pull");
		plan = made;
	}
	if (SPI_execute_plan(plan, args, absent, false, 0) != SPI_OK_SELECT || SPI_processed != 1)
		elog(ERROR, "a pull has no answer");
	for (int i = 0; i < 3; i++)
	{
		MemoryContext inner;

		values[i] = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, i + 1, &nulls[i]);
		inner = MemoryContextSwitchTo(caller);
		if (i > 0 && !nulls[i])
			values[i] = PointerGetDatum(PG_DETOAST_DATUM_COPY(values[i]));
		MemoryContextSwitchTo(inner);
	}
	SPI_finish();
}

static Datum
result(FunctionCallInfo fcinfo, Datum *values, bool *nulls)
{
	TupleDesc	desc;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "a function of pulls is declared wrongly");
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls));
}

/* synchro_pull(user_id text, request text, claims jsonb, OUT status int, OUT body text, OUT wait_on bigint[]) */
Datum
synchro_pull(PG_FUNCTION_ARGS)
{
	text	   *body;
	Datum		values[3];
	bool		nulls[3] = {false};

	if (answer_quickly(fcinfo, &body, &values[2]))
	{
		values[0] = Int32GetDatum(HTTP_OK);
		values[1] = PointerGetDatum(body);
		nulls[2] = values[2] == (Datum) 0;
	}
	else
		answer_slowly(fcinfo, values, nulls);
	PG_RETURN_DATUM(result(fcinfo, values, nulls));
}

/* _pull_quick(user_id text, request text, OUT body text, OUT wait_on bigint[]): the short way alone, for comparison. */
Datum
synchro_pull_quick(PG_FUNCTION_ARGS)
{
	text	   *body;
	Datum		values[2] = {0};
	bool		nulls[2] = {true, true};

	if (answer_quickly(fcinfo, &body, &values[1]))
	{
		values[0] = PointerGetDatum(body);
		nulls[0] = false;
		nulls[1] = values[1] == (Datum) 0;
	}
	PG_RETURN_DATUM(result(fcinfo, values, nulls));
}
