/*
 * seceval.c
 *		Set-based evaluation of a relation's membership function.
 *
 * The set form joins the keys with the twin, which the planner inlines. Its plan may evaluate an expression for rows that a call by key would
 * not touch, and so fail where the function does not: on an error of the function all keys are evaluated again, call by call.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/uuid.h"

#include "compat.h"
#include "errcodes.h"
#include "membership.h"
#include "seceval.h"

/* From this many keys on, a plan made for the very keys is worth its planning. */
#define MANY_KEYS 1000

/*
 * For few keys the plan is made once, perhaps while the projection is still empty, and kept: it must reach rows by index, however small
 * the tables were.
 */
static const char *const few_keys_settings[][2] = {
	{"plan_cache_mode", "force_generic_plan"},
	{"enable_seqscan", "off"},
	{"enable_hashjoin", "off"},
	{"enable_mergejoin", "off"},
};

typedef struct Evaluation
{
	DestReceiver receiver;		/* must be first */
	Membership *membership;
	ArrayType  *keys;			/* of the key's type */
	int			nkeys;
	bool		sorted;
	bool		out_of_order;	/* rows of one key did not come together */
	int64		ord;			/* key whose scopes are being collected; 0: none yet */
	ScopeSet	scopes;
	Tuplestorestate *result;
	TupleDesc	result_desc;
} Evaluation;

static void
start_over(Evaluation *ev)
{
	ev->ord = 0;
	ev->out_of_order = false;
	ev->scopes.n = 0;
	resetStringInfo(&ev->scopes.bytes);
	tuplestore_clear(ev->result);
}

/* Emits the scopes of the current key. */
static void
flush_key(Evaluation *ev)
{
	char		buffer[MAXALIGN(SCOPE_BUFFER)] pg_attribute_aligned(MAXIMUM_ALIGNOF);
	bool		nulls[2] = {false, false};
	Datum		values[2];

	scope_set_finish(&ev->scopes);
	values[0] = Int32GetDatum((int32) ev->ord);
	for (int i = 0; i < ev->scopes.n; i++)
	{
		values[1] = scope_set_get(&ev->scopes, i, buffer);
		tuplestore_putvalues(ev->result, ev->result_desc, values, nulls);
	}
	ev->scopes.n = 0;
	resetStringInfo(&ev->scopes.bytes);
}

/* One row (ord, scope) of the evaluating query; false ends it. */
static bool
receive_row(TupleTableSlot *slot, DestReceiver *self)
{
	Evaluation *ev = (Evaluation *) self;
	int64		ord;

	slot_getallattrs(slot);
	ord = DatumGetInt64(slot->tts_values[0]);
	if (ord != ev->ord)
	{
		if (ord < ev->ord)
		{
			ev->out_of_order = true;
			return false;
		}
		flush_key(ev);
		ev->ord = ord;
	}
	scope_set_add(&ev->scopes, slot->tts_values[1], slot->tts_isnull[1]);
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

static SPIPlanPtr
prepare(const char *query, Oid argument)
{
	SPIPlanPtr	plan = SPI_prepare(query, 1, &argument);

	if (plan == NULL || SPI_keepplan(plan) != 0)
		elog(ERROR, "could not prepare the evaluation: %s", SPI_result_code_string(SPI_result));
	return plan;
}

static void
execute(Evaluation *ev, SPIPlanPtr plan, Oid type, Datum argument)
{
	ParamListInfo params = makeParamList(1);
	SPIExecuteOptions options = {0};
	int			rc;

	params->params[0].value = argument;
	params->params[0].isnull = false;
	params->params[0].pflags = PARAM_FLAG_CONST;
	params->params[0].ptype = type;
	options.params = params;
	options.read_only = true;
	options.dest = &ev->receiver;
	rc = SPI_execute_plan_extended(plan, &options);
	if (rc < 0)
		elog(ERROR, "could not execute the evaluation: %s", SPI_result_code_string(rc));
}

/* All keys in one query. Runs as the function's owner. */
static void
evaluate_set(void *arg)
{
	Evaluation *ev = arg;
	Membership *m = ev->membership;
	SPIPlanPtr *plan = ev->sorted ? &m->sorted_plan : &m->set_plan;
	Oid			array_type = get_array_type(m->key_type);

	if (ev->nkeys >= MANY_KEYS)
		syn_set_option("plan_cache_mode", "force_custom_plan");
	else
		for (int i = 0; i < lengthof(few_keys_settings); i++)
			syn_set_option(few_keys_settings[i][0], few_keys_settings[i][1]);
	SPI_connect();
	if (*plan == NULL)
		*plan = prepare(psprintf("SELECT k.ord, f.scope FROM pg_catalog.unnest($1) WITH ORDINALITY k(key, ord), LATERAL %s(k.key) f(scope)%s",
								 syn_function_name(m->twin), ev->sorted ? " ORDER BY k.ord" : ""),
						array_type);
	execute(ev, *plan, array_type, PointerGetDatum(ev->keys));
	SPI_finish();
}

/* Key by key, in the registered form. Runs as the function's owner. */
static void
evaluate_calls(void *arg)
{
	Evaluation *ev = arg;
	Membership *m = ev->membership;
	int16		len;
	bool		byval;
	char		align;
	Datum	   *keys;
	int			nkeys;

	SPI_connect();
	if (m->call_plan == NULL)
		m->call_plan = prepare(psprintf("SELECT 0::pg_catalog.int8, f.scope FROM %s($1) f(scope)", syn_function_name(m->function)),
							   m->key_type);
	get_typlenbyvalalign(m->key_type, &len, &byval, &align);
	deconstruct_array(ev->keys, m->key_type, len, byval, align, &keys, NULL, &nkeys);
	for (int i = 0; i < nkeys; i++)
	{
		CHECK_FOR_INTERRUPTS();
		execute(ev, m->call_plan, m->key_type, keys[i]);
		ev->ord = i + 1;
		flush_key(ev);
		ev->ord = 0;
	}
	SPI_finish();
}

/* False: the function raised an error in the set form, which has left nothing behind. */
static bool
try_set(Evaluation *ev)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner resources = CurrentResourceOwner;
	ErrorData  *error = NULL;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		start_over(ev);
		syn_restricted_call(ev->membership->owner, evaluate_set, ev);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = resources;
	if (error == NULL)
		return true;
	if (!syn_is_function_error(error->sqlerrcode, SYNCHRO_ERR_EVALUATION_FAILED))
		ReThrowError(error);
	FreeErrorData(error);
	return false;
}

static void
evaluate(Evaluation *ev)
{
	Membership *m = ev->membership;

	if (OidIsValid(m->twin))
	{
		ev->sorted = m->unordered;
		if (try_set(ev))
		{
			if (!ev->out_of_order)
			{
				flush_key(ev);
				return;
			}
			m->unordered = ev->sorted = true;
			if (try_set(ev))
			{
				flush_key(ev);
				return;
			}
		}
	}
	start_over(ev);
	PG_TRY();
	{
		syn_restricted_call(m->owner, evaluate_calls, ev);
	}
	PG_CATCH();
	{
		syn_function_failed(SYNCHRO_ERR_EVALUATION_FAILED, "the membership function raised an error");
	}
	PG_END_TRY();
}

/* The form that fences use; much faster than the input function. */
static bool
parse_uuid(Datum key, pg_uuid_t *uuid)
{
	text	   *value = DatumGetTextPP(key);
	const unsigned char *str = (unsigned char *) VARDATA_ANY(value);

	if (VARSIZE_ANY_EXHDR(value) != 36)
		return false;
	memset(uuid, 0, sizeof(pg_uuid_t));
	for (int i = 0, digit = 0; i < 36; i++)
	{
		unsigned char c = str[i];

		if (i == 8 || i == 13 || i == 18 || i == 23)
		{
			if (c != '-')
				return false;
			continue;
		}
		if (c >= '0' && c <= '9')
			c -= '0';
		else if (c >= 'a' && c <= 'f')
			c -= 'a' - 10;
		else
			return false;
		uuid->data[digit / 2] |= digit % 2 ? c : c << 4;
		digit++;
	}
	return true;
}

/* Keys of the relation's key type, which is built in. */
static void
read_keys(Evaluation *ev, ArrayType *texts)
{
	Oid			type = ev->membership->key_type;
	Oid			input;
	Oid			input_param;
	FmgrInfo	function;
	Datum	   *keys;
	pg_uuid_t  *uuids;
	int16		len;
	bool		byval;
	char		align;

	if (ARR_NDIM(texts) > 1 || array_contains_nulls(texts))
		ereport(ERROR, (errcode(SYNCHRO_ERR_INVALID_PARAMETER), errmsg("keys are a list without nulls")));
	deconstruct_array(texts, TEXTOID, -1, false, TYPALIGN_INT, &keys, NULL, &ev->nkeys);
	uuids = type == UUIDOID ? palloc(sizeof(pg_uuid_t) * Max(ev->nkeys, 1)) : NULL;
	getTypeInputInfo(type, &input, &input_param);
	fmgr_info(input, &function);
	PG_TRY();
	{
		for (int i = 0; i < ev->nkeys; i++)
		{
			if (uuids && parse_uuid(keys[i], &uuids[i]))
				keys[i] = UUIDPGetDatum(&uuids[i]);
			else
				keys[i] = InputFunctionCall(&function, TextDatumGetCString(keys[i]), input_param, -1);
		}
	}
	PG_CATCH();
	{
		syn_function_failed(SYNCHRO_ERR_EVALUATION_FAILED, "a key is not of the key's type");
	}
	PG_END_TRY();
	get_typlenbyvalalign(type, &len, &byval, &align);
	ev->keys = construct_array(keys, ev->nkeys, type, len, byval, align);
}

PG_FUNCTION_INFO_V1(synchro_evaluate_membership);

/* _evaluate_membership(rel_no int, generation bigint, keys text[]) TABLE (ord int, scope_id text) */
Datum
synchro_evaluate_membership(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Evaluation *ev = palloc0(sizeof(Evaluation));
	Membership *m;

	InitMaterializedSRF(fcinfo, 0);
	ev->membership = m = membership_get(PG_GETARG_INT32(0), PG_GETARG_INT64(1));
	ev->result = rsinfo->setResult;
	ev->result_desc = rsinfo->setDesc;
	ev->receiver.receiveSlot = receive_row;
	ev->receiver.rStartup = receiver_startup;
	ev->receiver.rShutdown = receiver_nothing;
	ev->receiver.rDestroy = receiver_nothing;
	ev->receiver.mydest = DestNone;
	scope_set_init(&ev->scopes, SYNCHRO_ERR_EVALUATION_FAILED, m->single_scope ? 1 : m->max_fanout,
				   m->single_scope ? "a row of a single_scope table has more than one scope"
				   : "a row has more scopes than max_scope_fanout", false);
	read_keys(ev, PG_GETARG_ARRAYTYPE_P(2));
	if (ev->nkeys > 0)
		evaluate(ev);
	return (Datum) 0;
}
