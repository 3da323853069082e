/*
 * seceval.c
 *		Evaluation of a relation's membership function.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "compat.h"
#include "errcodes.h"
#include "evaluate.h"

static const FunctionShape shape = {1, "f.scope", "f(scope)", "the membership function raised an error"};

static void
add_scope(Evaluation *ev, TupleTableSlot *slot, int first)
{
	scope_add(&ev->texts, slot->tts_values[first], slot->tts_isnull[first], false);
}

/* The form that fences use; much faster than the input function. */
bool
syn_parse_uuid(Datum key, pg_uuid_t *uuid)
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
	Oid			type = ev->rule->key_type;
	Oid			input;
	Oid			input_param;
	FmgrInfo	function;
	Datum	   *keys;
	pg_uuid_t  *uuids;
	int16		len;
	bool		byval;
	char		align;
	int			nkeys;

	if (ARR_NDIM(texts) > 1 || array_contains_nulls(texts))
		ereport(ERROR, (errcode(SYNCHRO_ERR_INVALID_PARAMETER), errmsg("keys are a list without nulls")));
	deconstruct_array(texts, TEXTOID, -1, false, TYPALIGN_INT, &keys, NULL, &nkeys);
	uuids = type == UUIDOID ? palloc(sizeof(pg_uuid_t) * Max(nkeys, 1)) : NULL;
	getTypeInputInfo(type, &input, &input_param);
	fmgr_info(input, &function);
	PG_TRY();
	{
		for (int i = 0; i < nkeys; i++)
		{
			if (uuids && syn_parse_uuid(keys[i], &uuids[i]))
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
	ev->types[0] = type;
	ev->inputs[0] = construct_array(keys, nkeys, type, len, byval, align);
	ev->ninputs = nkeys;
}

PG_FUNCTION_INFO_V1(synchro_evaluate_membership);

/* _evaluate_membership(rel_no int, generation bigint, keys text[]) TABLE (ord int, scope_id text) */
Datum
synchro_evaluate_membership(PG_FUNCTION_ARGS)
{
	Rule	   *rule = rule_get(PG_GETARG_INT64(1), PG_GETARG_INT32(0), 0);
	Evaluation *ev = evaluation_begin(fcinfo, &shape, add_scope, rule);

	text_set_init(&ev->texts, SYNCHRO_ERR_EVALUATION_FAILED, rule->limit,
				  rule->single_scope ? "a row of a single_scope table has more than one scope" : "a row has more scopes than max_scope_fanout");
	read_keys(ev, PG_GETARG_ARRAYTYPE_P(2));
	evaluation_run(ev);
	return (Datum) 0;
}
