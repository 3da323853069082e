/*
 * assignment.c
 *		Evaluation of the registered assignment function. Part of serving connect and pull: a failure is sync_integrity_failure.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"

#include "actas.h"
#include "errcodes.h"
#include "seceval.h"

#define FAILURE SYNCHRO_ERR_SYNC_INTEGRITY_FAILURE

typedef struct Assignment
{
	DestReceiver receiver;		/* must be first */
	Oid			function;
	char		hash[65];
	int			max_scopes;		/* 0: no limit */
	Datum		user_id;
	TextSet		scopes;
} Assignment;

/* The registered function; false: there is none. */
static bool
read_registration(Assignment *a)
{
	SynActor	caller;
	bool		isnull;
	bool		found;

	syn_act_as(&caller, syn_owner());
	SPI_connect();
	if (SPI_execute("SELECT function_oid, definition_hash, max_scopes FROM synchro.assignment_function", true, 1) != SPI_OK_SELECT)
		elog(ERROR, "could not read the registry");
	found = SPI_processed > 0;
	if (found)
	{
		HeapTuple	tuple = SPI_tuptable->vals[0];
		TupleDesc	desc = SPI_tuptable->tupdesc;

		a->function = DatumGetObjectId(SPI_getbinval(tuple, desc, 1, &isnull));
		strlcpy(a->hash, SPI_getvalue(tuple, desc, 2), sizeof(a->hash));
		a->max_scopes = DatumGetInt32(SPI_getbinval(tuple, desc, 3, &isnull));
		if (isnull)
			a->max_scopes = 0;
	}
	SPI_finish();
	syn_act_back(&caller);
	return found;
}

/* The function verified last: its definition costs more than the evaluation. */
static void
verify(const Assignment *a)
{
	static Oid	verified = InvalidOid;
	static char verified_hash[65];
	static uint64 verified_at = 0;
	uint64		now = syn_function_epoch();
	char	   *hash;

	if (verified == a->function && verified_at == now && strcmp(verified_hash, a->hash) == 0)
		return;
	hash = syn_definition_hash(a->function);
	if (hash == NULL)
		syn_evaluation_failed(FAILURE, "the assignment function does not exist any more");
	if (strcmp(hash, a->hash) != 0)
		syn_evaluation_failed(FAILURE, "the assignment function is not the registered one");
	verified = a->function;
	strlcpy(verified_hash, a->hash, sizeof(verified_hash));
	verified_at = now;
}

static bool
receive_row(TupleTableSlot *slot, DestReceiver *self)
{
	Assignment *a = (Assignment *) self;

	slot_getallattrs(slot);
	scope_add(&a->scopes, slot->tts_values[0], slot->tts_isnull[0], true);
	return true;
}

static void
receiver_startup(DestReceiver *self, int operation, TupleDesc desc)
{
}

static void
receiver_nothing(DestReceiver *self)
{
}

/* Runs as the function's owner. */
static void
call_function(void *arg)
{
	Assignment *a = arg;
	ParamListInfo params = makeParamList(1);
	SPIExecuteOptions options = {0};
	int			rc;

	params->params[0].value = a->user_id;
	params->params[0].isnull = false;
	params->params[0].pflags = PARAM_FLAG_CONST;
	params->params[0].ptype = TEXTOID;
	options.params = params;
	options.read_only = true;
	options.dest = &a->receiver;
	SPI_connect();
	rc = SPI_execute_extended(psprintf("SELECT f.scope FROM %s($1) f(scope)", syn_function_name(a->function)), &options);
	if (rc < 0)
		elog(ERROR, "could not execute the assignment function: %s", SPI_result_code_string(rc));
	SPI_finish();
}

PG_FUNCTION_INFO_V1(synchro_evaluate_assignment);

/* _evaluate_assignment(user_id text) SETOF text */
Datum
synchro_evaluate_assignment(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Assignment *a = palloc0(sizeof(Assignment));

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	a->user_id = PG_GETARG_DATUM(0);
	if (!read_registration(a))
		return (Datum) 0;
	verify(a);
	a->receiver.receiveSlot = receive_row;
	a->receiver.rStartup = receiver_startup;
	a->receiver.rShutdown = receiver_nothing;
	a->receiver.rDestroy = receiver_nothing;
	a->receiver.mydest = DestNone;
	text_set_init(&a->scopes, FAILURE, a->max_scopes, "a user has more scopes than max_scopes");
	PG_TRY();
	{
		syn_restricted_call(syn_function_owner(a->function), call_function, a);
	}
	PG_CATCH();
	{
		syn_function_failed(FAILURE, "the assignment function raised an error");
	}
	PG_END_TRY();
	text_set_finish(&a->scopes);
	for (int i = 0; i < a->scopes.n; i++)
	{
		Datum		value = text_set_get(&a->scopes, i);
		bool		isnull = false;

		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, &value, &isnull);
	}
	return (Datum) 0;
}
