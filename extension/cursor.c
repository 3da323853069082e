/*
 * cursor.c
 *		Incremental cursors: the tokens that every pull opens and signs, without a detour over jsonb.
 *
 * A position is (commit_lsn, event_ordinal, effect_ordinal). Before everything, "generation_start", is event -1; after all
 * effects of a transaction, "transaction_end", is the highest event. So positions compare as rows.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "fmgr.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/pg_lsn.h"

#include "compat.h"
#include "cursor.h"
#include "jcs.h"
#include "token.h"

#define NCOLUMNS 12

PG_FUNCTION_INFO_V1(synchro_cursor_sign);
PG_FUNCTION_INFO_V1(synchro_cursor_open);
PG_FUNCTION_INFO_V1(synchro_presented_cursors);

static void
append_text_member(StringInfo out, const char *name, SynText value)
{
	appendStringInfoString(out, name);
	jcs_append_string(out, value.data, value.len);
}

/* The payload; members are in the order of RFC 8785. */
static void
append_cursor(StringInfo out, const SynCursor *c, const char *key_id)
{
	bool		start = c->event == SYN_START_EVENT;
	bool		end = c->event == SYN_END_EVENT;

	append_text_member(out, "{\"c\":", c->client);
	if (!start && !end)
		appendStringInfo(out, ",\"e\":" INT64_FORMAT ",\"f\":%d", c->event, c->effect);
	appendStringInfo(out, ",\"g\":" INT64_FORMAT, c->client_generation);
	append_text_member(out, ",\"h\":", c->schema_hash);
	appendStringInfo(out, ",\"k\":\"%c\",\"kid\":\"%s\"", start ? 'g' : end ? 't' : 'e', key_id);
	if (!start)
		appendStringInfo(out, ",\"l\":\"%X/%X\"", (uint32) (c->lsn >> 32), (uint32) c->lsn);
	appendStringInfo(out, ",\"m\":" INT64_FORMAT ",\"r\":" INT64_FORMAT, c->membership, c->retention);
	append_text_member(out, ",\"s\":", c->scope);
	appendStringInfo(out, ",\"sg\":" INT64_FORMAT ",\"t\":" INT64_FORMAT, c->stream, c->issued);
	append_text_member(out, ",\"u\":", c->user);
	appendStringInfoString(out, ",\"v\":1}");
}

static text *
seal_cursor(const SynCursor *c, const SynchroSecret *key)
{
	StringInfoData payload;

	initStringInfo(&payload);
	append_cursor(&payload, c, key->key_id);
	return token_seal(key, &payload);
}

/* Signs with the active key. */
text *
syn_cursor_seal(const SynCursor *c)
{
	const SynchroSecret *key = synchro_active_secret("cursor");

	if (key == NULL)
		elog(ERROR, "there is no key for cursors");
	return seal_cursor(c, key);
}

static SynText
text_argument(FunctionCallInfo fcinfo, int n)
{
	text	   *value = PG_GETARG_TEXT_PP(n);
	SynText		result = {VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value)};

	return result;
}

/*
 * _cursor_sign(lsn, event, effect, stream, user, client, client_generation, scope, schema_hash, membership, retention, issued,
 * key_id): a key_id of NULL means the active key. NULL when any other argument is, or without a key.
 */
Datum
synchro_cursor_sign(PG_FUNCTION_ARGS)
{
	SynCursor		c;
	const SynchroSecret *key;

	for (int i = 0; i < NCOLUMNS; i++)
		if (PG_ARGISNULL(i))
			PG_RETURN_NULL();
	c.lsn = PG_GETARG_LSN(0);
	c.event = PG_GETARG_INT64(1);
	c.effect = PG_GETARG_INT32(2);
	c.stream = PG_GETARG_INT64(3);
	c.user = text_argument(fcinfo, 4);
	c.client = text_argument(fcinfo, 5);
	c.client_generation = PG_GETARG_INT64(6);
	c.scope = text_argument(fcinfo, 7);
	c.schema_hash = text_argument(fcinfo, 8);
	c.membership = PG_GETARG_INT64(9);
	c.retention = PG_GETARG_INT64(10);
	c.issued = PG_GETARG_INT64(11);

	key = PG_ARGISNULL(12) ? synchro_active_secret("cursor")
		: synchro_secret_by_id("cursor", text_to_cstring(PG_GETARG_TEXT_PP(12)));
	if (key == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(seal_cursor(&c, key));
}

static bool
read_text(const JcsNode *root, const char *name, SynText *out)
{
	const JcsNode *node = jcs_member(root, name);

	if (node == NULL || node->kind != JCS_STRING)
		return false;
	out->data = node->u.str;
	out->len = node->len;
	return true;
}

static bool
read_position(const JcsNode *root, SynCursor *c)
{
	const JcsNode *kind = jcs_member(root, "k");
	SynText		lsn;
	bool		error = false;
	int64		effect;

	c->lsn = 0;
	c->event = SYN_START_EVENT;
	c->effect = SYN_START_EVENT;
	if (jcs_string_is(kind, "g"))
		return true;
	if (!read_text(root, "l", &lsn))
		return false;
	c->lsn = pg_lsn_in_internal(pnstrdup(lsn.data, lsn.len), &error);
	c->event = SYN_END_EVENT;
	c->effect = SYN_END_EFFECT;
	if (error || jcs_string_is(kind, "t"))
		return !error;
	if (!jcs_string_is(kind, "e") || !jcs_integer(jcs_member(root, "e"), &c->event) ||
		!jcs_integer(jcs_member(root, "f"), &effect) || c->event < 0 || effect < 0 || effect > SYN_END_EFFECT)
		return false;
	c->effect = (int32) effect;
	return true;
}

/* Reads a payload; anything but the one spelling that append_cursor gives it is refused. */
static bool
read_cursor(const char *payload, int len, const char *key_id, SynCursor *c)
{
	JcsError	error;
	JcsNode    *root = jcs_parse(payload, len, 0, &error);
	StringInfoData again;

	if (root == NULL || root->kind != JCS_OBJECT || !read_position(root, c) ||
		!read_text(root, "u", &c->user) || !read_text(root, "c", &c->client) ||
		!read_text(root, "s", &c->scope) || !read_text(root, "h", &c->schema_hash) ||
		!jcs_integer(jcs_member(root, "sg"), &c->stream) || !jcs_integer(jcs_member(root, "g"), &c->client_generation) ||
		!jcs_integer(jcs_member(root, "m"), &c->membership) || !jcs_integer(jcs_member(root, "r"), &c->retention) ||
		!jcs_integer(jcs_member(root, "t"), &c->issued))
		return false;
	initStringInfo(&again);
	append_cursor(&again, c, key_id);
	return again.len == len && memcmp(again.data, payload, len) == 0;
}

static Datum
text_datum(SynText value)
{
	return PointerGetDatum(cstring_to_text_with_len(value.data, value.len));
}

/* The fields in the order of _cursor_sign's arguments. */
static void
cursor_values(const SynCursor *c, Datum *values)
{
	values[0] = LSNGetDatum(c->lsn);
	values[1] = Int64GetDatum(c->event);
	values[2] = Int32GetDatum(c->effect);
	values[3] = Int64GetDatum(c->stream);
	values[4] = text_datum(c->user);
	values[5] = text_datum(c->client);
	values[6] = Int64GetDatum(c->client_generation);
	values[7] = text_datum(c->scope);
	values[8] = text_datum(c->schema_hash);
	values[9] = Int64GetDatum(c->membership);
	values[10] = Int64GetDatum(c->retention);
	values[11] = Int64GetDatum(c->issued);
}

bool
syn_cursor_open(const text *token, SynCursor *c)
{
	const SynchroSecret *signer;
	int			len;
	char	   *payload = token_unseal("cursor", token, &len, &signer);

	return payload && read_cursor(payload, len, signer->key_id, c);
}

/* _cursor_open(token text): its fields, or NULL. */
Datum
synchro_cursor_open(PG_FUNCTION_ARGS)
{
	SynCursor		c;
	TupleDesc	desc;
	Datum		values[NCOLUMNS];
	bool		nulls[NCOLUMNS] = {false};

	if (!syn_cursor_open(PG_GETARG_TEXT_PP(0), &c))
		PG_RETURN_NULL();
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "_cursor_open is declared wrongly");
	cursor_values(&c, values);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}

/*
 * _presented_cursors(scopes json): a row for each member {"cursor": ...} of an object whose shape is checked: its name, whether
 * there is a token, and the fields of the token, NULL when it is not one of ours.
 */
Datum
synchro_presented_cursors(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	text	   *scopes = PG_GETARG_TEXT_PP(0);
	JcsError	error;
	JcsNode    *root = jcs_parse(text_to_cstring(scopes), VARSIZE_ANY_EXHDR(scopes), 0, &error);

	if (root == NULL || root->kind != JCS_OBJECT)
		elog(ERROR, "scopes are not an object");
	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < root->len; i++)
	{
		const JcsMember *member = &root->u.members[i];
		const JcsNode *token = jcs_member(member->value, "cursor");
		bool		presented = token && token->kind == JCS_STRING;
		Datum		values[NCOLUMNS + 2];
		bool		nulls[NCOLUMNS + 2] = {false};
		SynCursor		c;

		values[0] = PointerGetDatum(cstring_to_text_with_len(member->name, member->namelen));
		values[1] = BoolGetDatum(presented);
		if (presented && syn_cursor_open(cstring_to_text_with_len(token->u.str, token->len), &c))
			cursor_values(&c, values + 2);
		else
			memset(nulls + 2, true, NCOLUMNS);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}
