/*
 * evaluate.c
 *		Set-based evaluation of a registered function.
 *
 * The set form joins the inputs with the twin, which the planner inlines. Its plan may evaluate an expression for rows that a call would
 * not touch, and so fail where the function does not: on an error of the function all inputs are evaluated again, call by call.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "utils/lsyscache.h"

#include "errcodes.h"
#include "evaluate.h"

/* From this many inputs on, a plan made for the very inputs is worth its planning. */
#define MANY_INPUTS 1000

/*
 * For few inputs the plan is made once, perhaps while the projections are still empty, and kept: it must reach rows by index, however
 * small the tables were.
 */
static const char *const few_inputs_settings[][2] = {
	{"plan_cache_mode", "force_generic_plan"},
	{"enable_seqscan", "off"},
	{"enable_hashjoin", "off"},
	{"enable_mergejoin", "off"},
};

static void
start_over(Evaluation *ev)
{
	ev->ord = 0;
	ev->out_of_order = false;
	text_set_clear(&ev->texts);
	tuplestore_clear(ev->result);
}

/* Emits the results of the current input. */
static void
flush_input(Evaluation *ev)
{
	bool		nulls[2] = {false, false};
	Datum		values[2];

	text_set_finish(&ev->texts);
	values[0] = Int32GetDatum((int32) ev->ord);
	for (int i = 0; i < ev->texts.n; i++)
	{
		values[1] = text_set_get(&ev->texts, i);
		tuplestore_putvalues(ev->result, ev->result_desc, values, nulls);
	}
	text_set_clear(&ev->texts);
}

/* One row (ord, result) of the evaluating query; false ends it. */
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
		flush_input(ev);
		ev->ord = ord;
	}
	ev->add(ev, slot, 1);
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

/* "SELECT <ord>, <result> FROM <from> <function>(<prefix>1, <prefix>2) f" */
static SPIPlanPtr
prepare(const Evaluation *ev, const char *ord, const char *from, Oid function, const char *prefix, const char *end, const Oid *types)
{
	const FunctionShape *shape = ev->shape;
	StringInfoData query;
	SPIPlanPtr	plan;

	initStringInfo(&query);
	appendStringInfo(&query, "SELECT %s, %s FROM %s%s(", ord, shape->columns, from, syn_function_name(function));
	for (int i = 1; i <= shape->nargs; i++)
		appendStringInfo(&query, "%s%s%d", i > 1 ? ", " : "", prefix, i);
	appendStringInfo(&query, ") %s%s", shape->alias, end);
	plan = SPI_prepare(query.data, shape->nargs, (Oid *) types);
	if (plan == NULL || SPI_keepplan(plan) != 0)
		elog(ERROR, "could not prepare the evaluation: %s", SPI_result_code_string(SPI_result));
	return plan;
}

static void
execute(Evaluation *ev, SPIPlanPtr plan, const Oid *types, const NullableDatum *arguments)
{
	ParamListInfo params = makeParamList(ev->shape->nargs);
	SPIExecuteOptions options = {0};
	int			rc;

	for (int i = 0; i < ev->shape->nargs; i++)
	{
		params->params[i].value = arguments[i].value;
		params->params[i].isnull = arguments[i].isnull;
		params->params[i].pflags = PARAM_FLAG_CONST;
		params->params[i].ptype = types[i];
	}
	options.params = params;
	options.read_only = true;
	options.dest = &ev->receiver;
	rc = SPI_execute_plan_extended(plan, &options);
	if (rc < 0)
		elog(ERROR, "could not execute the evaluation: %s", SPI_result_code_string(rc));
}

/* All inputs in one query. Runs as the function's owner. */
static void
evaluate_set(void *arg)
{
	Evaluation *ev = arg;
	SPIPlanPtr *plan = ev->sorted ? &ev->rule->sorted_plan : &ev->rule->set_plan;
	Oid			types[MAX_ARGUMENTS];
	NullableDatum arguments[MAX_ARGUMENTS];

	for (int i = 0; i < ev->shape->nargs; i++)
	{
		types[i] = get_array_type(ev->types[i]);
		arguments[i].value = PointerGetDatum(ev->inputs[i]);
		arguments[i].isnull = false;
	}
	if (ev->ninputs >= MANY_INPUTS)
		syn_set_option("plan_cache_mode", "force_custom_plan");
	else
		for (int i = 0; i < lengthof(few_inputs_settings); i++)
			syn_set_option(few_inputs_settings[i][0], few_inputs_settings[i][1]);
	SPI_connect();
	if (*plan == NULL)
		*plan = prepare(ev, "k.ord",
						ev->shape->nargs == 1 ? "pg_catalog.unnest($1) WITH ORDINALITY k(a1, ord), LATERAL "
						: "ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) WITH ORDINALITY k(a1, a2, ord), LATERAL ",
						ev->rule->twin, "k.a", ev->sorted ? " ORDER BY k.ord" : "", types);
	execute(ev, *plan, types, arguments);
	SPI_finish();
}

/* Input by input, in the registered form or what stands in for it. Runs as the function's owner. */
static void
evaluate_calls(void *arg)
{
	Evaluation *ev = arg;
	Rule	   *rule = ev->rule;
	Datum	   *values[MAX_ARGUMENTS];
	bool	   *nulls[MAX_ARGUMENTS];

	SPI_connect();
	if (rule->call_plan == NULL)
		rule->call_plan = prepare(ev, "0::pg_catalog.int8", "", rule->replaced ? rule->twin : rule->function, "$", "", ev->types);
	for (int i = 0; i < ev->shape->nargs; i++)
	{
		int16		len;
		bool		byval;
		char		align;
		int			n;

		get_typlenbyvalalign(ev->types[i], &len, &byval, &align);
		deconstruct_array(ev->inputs[i], ev->types[i], len, byval, align, &values[i], &nulls[i], &n);
	}
	for (int k = 0; k < ev->ninputs; k++)
	{
		NullableDatum arguments[MAX_ARGUMENTS];

		CHECK_FOR_INTERRUPTS();
		for (int i = 0; i < ev->shape->nargs; i++)
		{
			arguments[i].value = values[i][k];
			arguments[i].isnull = nulls[i][k];
		}
		execute(ev, rule->call_plan, ev->types, arguments);
		ev->ord = k + 1;
		flush_input(ev);
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
		syn_restricted_call(ev->rule->owner, evaluate_set, ev);
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

void
evaluation_run(Evaluation *ev)
{
	Rule	   *rule = ev->rule;

	if (ev->ninputs == 0)
		return;
	if (OidIsValid(rule->twin))
	{
		ev->sorted = rule->unordered;
		if (try_set(ev))
		{
			if (!ev->out_of_order)
			{
				flush_input(ev);
				return;
			}
			rule->unordered = ev->sorted = true;
			if (try_set(ev))
			{
				flush_input(ev);
				return;
			}
		}
	}
	start_over(ev);
	PG_TRY();
	{
		syn_restricted_call(rule->owner, evaluate_calls, ev);
	}
	PG_CATCH();
	{
		syn_function_failed(SYNCHRO_ERR_EVALUATION_FAILED, ev->shape->failure);
	}
	PG_END_TRY();
}

Evaluation *
evaluation_begin(FunctionCallInfo fcinfo, const FunctionShape *shape, AddResult add, Rule *rule)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Evaluation *ev = palloc0(sizeof(Evaluation));

	InitMaterializedSRF(fcinfo, 0);
	ev->shape = shape;
	ev->add = add;
	ev->rule = rule;
	ev->result = rsinfo->setResult;
	ev->result_desc = rsinfo->setDesc;
	ev->receiver.receiveSlot = receive_row;
	ev->receiver.rStartup = receiver_startup;
	ev->receiver.rShutdown = receiver_nothing;
	ev->receiver.rDestroy = receiver_nothing;
	ev->receiver.mydest = DestNone;
	return ev;
}
