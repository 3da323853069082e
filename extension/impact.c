/*
 * impact.c
 *		Evaluation of a dependency's impact function: the target's rows that a changed row of the source affects.
 *
 * Results are keys as fences write them. Another spelling of a key would be another identity, and is refused, but for casts to text.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"

#include "compat.h"
#include "errcodes.h"
#include "evaluate.h"

static const FunctionShape shape = {2, "f.table_id, f.pk_type, f.pk_value", "f", "the impact function raised an error"};

static bool
text_is(Datum value, const char *expected)
{
	text	   *t = DatumGetTextPP(value);
	size_t		len = strlen(expected);

	return VARSIZE_ANY_EXHDR(t) == len && memcmp(VARDATA_ANY(t), expected, len) == 0;
}

/* The text that the key has in fences. */
static char *
canonical_key(const Rule *rule, const char *key)
{
	Oid			function;
	Oid			param;
	bool		varlena;
	char	   *volatile result = NULL;

	PG_TRY();
	{
		Datum		value;

		getTypeInputInfo(rule->key_type, &function, &param);
		value = OidInputFunctionCall(function, unconstify(char *, key), param, rule->key_typmod);
		getTypeOutputInfo(rule->key_type, &function, &varlena);
		result = OidOutputFunctionCall(function, value);
	}
	PG_CATCH();
	{
		syn_function_failed(SYNCHRO_ERR_EVALUATION_FAILED, "a pk_value is not of the target's key type");
	}
	PG_END_TRY();
	return result;
}

static int
significant_length(const char *key)
{
	int			len = strlen(key);

	while (len > 0 && key[len - 1] == ' ')
		len--;
	return len;
}

/* A cast to text is another form of two types, and means the same key: char(n) without its padding, inet with the mask of a host. */
static bool
is_text_cast(const Rule *rule, const char *key, const char *given)
{
	if (rule->key_type == INETOID)
		return strcmp(given, TextDatumGetCString(DirectFunctionCall1(network_show, DirectFunctionCall1(inet_in, CStringGetDatum(key))))) == 0;
	return rule->key_type == BPCHAROID && significant_length(key) == significant_length(given) && strncmp(key, given, significant_length(key)) == 0;
}
static void
add_key(Evaluation *ev, Datum pk_value)
{
	const Rule *rule = ev->rule;
	pg_uuid_t	uuid;
	char	   *given;
	char	   *key;

	if (rule->key_type == UUIDOID && syn_parse_uuid(pk_value, &uuid))
	{
		text	   *value = DatumGetTextPP(pk_value);

		text_set_add(&ev->texts, VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value));
		return;
	}
	given = TextDatumGetCString(pk_value);
	key = canonical_key(rule, given);
	if (strcmp(key, given) != 0 && !is_text_cast(rule, key, given))
		syn_evaluation_failed(SYNCHRO_ERR_EVALUATION_FAILED, "a pk_value is not in canonical form");
	text_set_add(&ev->texts, key, strlen(key));
	pfree(key);
	pfree(given);
}

static void
add_reference(Evaluation *ev, TupleTableSlot *slot, int first)
{
	const Datum *values = slot->tts_values + first;
	const bool *nulls = slot->tts_isnull + first;

	if (nulls[0] || nulls[1] || nulls[2])
		syn_evaluation_failed(SYNCHRO_ERR_EVALUATION_FAILED, "a row reference has a null member");
	if (!text_is(values[0], ev->rule->table_id))
		syn_evaluation_failed(SYNCHRO_ERR_EVALUATION_FAILED, "a row reference names another table than the target");
	if (!text_is(values[1], ev->rule->pk_type))
		syn_evaluation_failed(SYNCHRO_ERR_EVALUATION_FAILED, "a row reference has another pk_type than the target");
	add_key(ev, values[2]);
}

PG_FUNCTION_INFO_V1(synchro_evaluate_impact);

/* _evaluate_impact(generation bigint, target int, source int, old jsonb[], new jsonb[]) TABLE (ord int, key text) */
Datum
synchro_evaluate_impact(PG_FUNCTION_ARGS)
{
	Evaluation *ev;

	if (PG_GETARG_INT32(2) <= 0)
		ereport(ERROR, (errcode(SYNCHRO_ERR_INVALID_PARAMETER), errmsg("the source is a relation number")));
	ev = evaluation_begin(fcinfo, &shape, add_reference,
						  rule_get(PG_GETARG_INT64(0), PG_GETARG_INT32(1), PG_GETARG_INT32(2)));
	text_set_init(&ev->texts, SYNCHRO_ERR_EVALUATION_FAILED, ev->rule->limit, "a change affects more rows than max_impact_rows");
	for (int i = 0; i < shape.nargs; i++)
	{
		ev->types[i] = JSONBOID;
		ev->inputs[i] = PG_GETARG_ARRAYTYPE_P(3 + i);
	}
	ev->ninputs = ArrayGetNItems(ARR_NDIM(ev->inputs[0]), ARR_DIMS(ev->inputs[0]));
	if (ARR_NDIM(ev->inputs[0]) > 1 || ARR_NDIM(ev->inputs[1]) > 1 ||
		ArrayGetNItems(ARR_NDIM(ev->inputs[1]), ARR_DIMS(ev->inputs[1])) != ev->ninputs)
		ereport(ERROR, (errcode(SYNCHRO_ERR_INVALID_PARAMETER), errmsg("old and new images are lists of one length")));
	evaluation_run(ev);
	return (Datum) 0;
}
