/*
 * pull_quick.c
 *		The answer to a pull in good order, which is what nearly all pulls are.
 *
 * It does what _pull (sql/functions/_pull.sql) would do, with few statements, and only where nothing has to be judged or refused: the
 * client is confirmed and its scopes are the ones assigned, its cursors are good. Most such pulls bring nothing; then nothing is
 * written, either. In every other case it says nothing, and _pull decides.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/pg_lsn.h"
#include "utils/timestamp.h"

#include "canonical_scope.h"
#include "compat.h"
#include "digest_cache.h"
#include "jcs.h"
#include "pull_page.h"
#include "pull_state.h"

#define UNIX_EPOCH ((POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY)

/* What is answered, beside the state of the scopes. */
typedef struct Answer
{
	StringInfoData changes;
	bool		more;
	SynPageCursor *cursors;		/* of the scopes */
} Answer;

static const char acknowledge_statement[] =
"UPDATE synchro.client_scope s SET ack_kind = u.kind, ack_lsn = u.lsn, ack_event = u.event, ack_effect = u.effect"
" FROM ROWS FROM (pg_catalog.unnest($2), pg_catalog.unnest($3), pg_catalog.unnest($4), pg_catalog.unnest($5), pg_catalog.unnest($6))"
" u (scope_id, kind, lsn, event, effect)"
" WHERE s.client_no OPERATOR(pg_catalog.=) $1 AND s.scope_id OPERATOR(pg_catalog.=) u.scope_id";

static SynText
node_text(const JcsNode *node)
{
	SynText		result = {node->u.str, node->len};

	return result;
}

/* Takes the position that is presented for a scope; false: it is not good, or something else has to be written first. */
static bool
take_cursor(SynPull *pull, SynPullScope *s, const JcsNode *token)
{
	SynCursor	c;

	if (token == NULL || token->kind != JCS_STRING || !syn_cursor_open(cstring_to_text_with_len(token->u.str, token->len), &c) ||
		!syn_same_text(c.user, pull->user) || !syn_same_text(c.client, pull->client_id) || !syn_same_text(c.scope, s->id) ||
		!syn_same_text(c.schema_hash, pull->schema_hash) || c.stream != pull->stream || c.client_generation != pull->client_generation ||
		c.membership != s->membership || c.retention != s->retention)
		return false;
	if (s->number != 0 && syn_compare_positions(c.lsn, c.event, c.effect, s->floor_lsn, s->floor_event, s->floor_effect) < 0)
		return false;
	if (syn_compare_positions(c.lsn, c.event, c.effect, pull->boundary, SYN_END_EVENT, SYN_END_EFFECT) > 0)
		return false;
	s->lsn = c.lsn;
	s->event = c.event;
	s->effect = c.effect;
	if (s->number != 0 && (s->high > c.lsn || (s->high == c.lsn && c.event < SYN_END_EVENT)))
		pull->news = true;
	if (syn_compare_positions(c.lsn, c.event, c.effect, s->ack_lsn, s->ack_event, s->ack_effect) > 0)
	{
		if (!pull->seen)
			return false;
		/* The conditions under which _acknowledge leaves a checkpoint alone. */
		s->acknowledges = s->ack_event != SYN_END_EVENT || (s->number != 0 && s->high > s->ack_lsn);
		pull->acknowledges |= s->acknowledges;
	}
	return true;
}

static bool
is_object(const JcsNode *node, int members)
{
	return node != NULL && node->kind == JCS_OBJECT && node->len == members;
}

/*
 * Is the request for this client generation, schema and set, and for exactly these scopes, each from a good position? What is not
 * compared here is not in it: it has the shape that _request wants.
 */
static bool
take_request(SynPull *pull, const JcsNode *request)
{
	const JcsNode *schema = jcs_member(request, "schema");
	const JcsNode *scopes = jcs_member(request, "scopes");
	int64		n;

	if (!is_object(request, 6) || !is_object(schema, 2) || !is_object(scopes, pull->nscopes) ||
		jcs_member(schema, "hash") == NULL || jcs_member(schema, "hash")->kind != JCS_STRING ||
		!jcs_integer(jcs_member(request, "client_generation"), &n) || n != pull->client_generation ||
		!jcs_integer(jcs_member(schema, "version"), &n) || n != pull->schema_version ||
		!syn_same_text(node_text(jcs_member(schema, "hash")), pull->schema_hash) ||
		!jcs_integer(jcs_member(request, "scope_set_version"), &n) || n < 0 || n > pull->set_version ||
		!jcs_integer(jcs_member(request, "limit"), &pull->limit) || pull->limit < 1 || pull->limit > SYN_PULL_LIMIT)
		return false;
	for (int i = 0; i < scopes->len; i++)
	{
		const JcsMember *m = &scopes->u.members[i];
		SynText		id = {m->name, m->namelen};
		SynPullScope *s = bsearch(&id, pull->scopes, pull->nscopes, sizeof(SynPullScope), syn_compare_texts);

		if (s == NULL || !is_object(m->value, 1) || !take_cursor(pull, s, jcs_member(m->value, "cursor")))
			return false;
	}
	return true;
}

bool
syn_pull_in_order(SynPull *pull, text *user, text *body)
{
	JcsError	error;
	JcsNode    *request = jcs_parse(text_to_cstring(body), VARSIZE_ANY_EXHDR(body), 0, &error);
	JcsNode    *client = request && request->kind == JCS_OBJECT ? jcs_member(request, "client_id") : NULL;

	if (client == NULL || client->kind != JCS_STRING)
		return false;
	pull->user = (SynText) {VARDATA_ANY(user), VARSIZE_ANY_EXHDR(user)};
	pull->client_id = node_text(client);
	if (!syn_pull_client(pull) || !syn_pull_boundary(pull))
		return false;
	syn_pull_scopes(pull);
	return take_request(pull, request);
}

bool
syn_pull_is_quiet(const SynPull *pull)
{
	for (int i = 0; i < pull->nscopes; i++)
		if (pull->scopes[i].number != 0 && pull->scopes[i].digest == NULL)
			return false;
	return !pull->news && !pull->acknowledges && !pull->assigns;
}

static void
find_changes(const SynPull *pull, Answer *page)
{
	page->cursors = palloc0(Max(pull->nscopes, 1) * sizeof(SynPageCursor));
	for (int i = 0; i < pull->nscopes; i++)
	{
		const SynPullScope *s = &pull->scopes[i];

		page->cursors[i] = (SynPageCursor) {s->number, s->id, s->lsn, s->event, s->effect, s->high};
	}
	initStringInfo(&page->changes);
	if (pull->news)
		syn_pull_page(page->cursors, pull->nscopes, pull->schema_version, pull->boundary, (int) pull->limit, &page->changes, &page->more);
}

/* The digests that are not in the cache. */
static void
find_digests(SynPull *pull)
{
	SynDigest  *digests = palloc0(Max(pull->nscopes, 1) * sizeof(SynDigest));
	int			n = 0;

	for (int i = 0; i < pull->nscopes; i++)
	{
		const SynPullScope *s = &pull->scopes[i];

		if (s->number != 0 && s->digest == NULL)
			digests[n++] = (SynDigest) {.scope_no = s->number, .scope_id = cstring_to_text_with_len(s->id.data, s->id.len), .high = s->high};
	}
	if (n == 0)
		return;
	syn_cached_digests(pull->schema_version, digests, n);
	n = 0;
	for (int i = 0; i < pull->nscopes; i++)
		if (pull->scopes[i].number != 0 && pull->scopes[i].digest == NULL)
			pull->scopes[i].digest = digests[n++].digest;
}

static ArrayType *
column(Datum *values, bool *nulls, int n, Oid type)
{
	int			bound = 1;
	int16		len;
	bool		byval;
	char		align;

	get_typlenbyvalalign(type, &len, &byval, &align);
	return construct_md_array(values, nulls, 1, &n, &bound, type, len, byval, align);
}

/* Records the presented positions, as _acknowledge does. */
static void
acknowledge(const SynPull *pull)
{
	static SPIPlanPtr plan;		/* kept for the session */
	static const Oid types[5] = {TEXTOID, TEXTOID, LSNOID, INT8OID, INT4OID};
	Datum	   *values[5];
	bool	   *nulls[5];
	Datum		args[6] = {Int64GetDatum(pull->client_no)};
	int			n = 0;

	for (int c = 0; c < 5; c++)
	{
		values[c] = palloc0(pull->nscopes * sizeof(Datum));
		nulls[c] = palloc0(pull->nscopes * sizeof(bool));
	}
	for (int i = 0; i < pull->nscopes; i++)
	{
		const SynPullScope *s = &pull->scopes[i];
		bool		start = s->event == SYN_START_EVENT;
		bool		end = s->event == SYN_END_EVENT;

		if (!s->acknowledges)
			continue;
		values[0][n] = PointerGetDatum(cstring_to_text_with_len(s->id.data, s->id.len));
		values[1][n] = CStringGetTextDatum(start ? "generation_start" : end ? "transaction_end" : "effect");
		values[2][n] = LSNGetDatum(s->lsn);
		values[3][n] = Int64GetDatum(s->event);
		values[4][n] = Int32GetDatum(s->effect);
		nulls[2][n] = start;
		nulls[3][n] = nulls[4][n] = start || end;
		n++;
	}
	for (int c = 0; c < 5; c++)
		args[c + 1] = PointerGetDatum(column(values[c], nulls[c], n, types[c]));
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	if (plan == NULL)
	{
		Oid			params[6] = {INT8OID, TEXTARRAYOID, TEXTARRAYOID, PG_LSNARRAYOID, INT8ARRAYOID, INT4ARRAYOID};
		SPIPlanPtr	made = SPI_prepare(acknowledge_statement, 6, params);

		if (made == NULL || SPI_keepplan(made) != 0)
			elog(ERROR, "could not prepare a statement of a pull");
		plan = made;
	}
	if (SPI_execute_plan(plan, args, NULL, false, 0) != SPI_OK_UPDATE || SPI_processed != (uint64) n)
		elog(ERROR, "could not record what was acknowledged");
	SPI_finish();
}

static void
append_checksum(StringInfo out, const SynPull *pull, const SynPullScope *s)
{
	const char *digest = s->digest;

	if (digest == NULL)			/* no effect so far: empty */
	{
		SynScopeHash hash;
		uint8		schema_hash[SYN_HASH_LEN];

		if (!syn_parse_hash(pull->schema_hash.data, pull->schema_hash.len, schema_hash))
			elog(ERROR, "a manifest has a malformed hash");
		syn_scope_hash_begin(&hash, schema_hash, s->id.data, s->id.len, 0);
		digest = syn_scope_hash_end(&hash);
	}
	jcs_append_string(out, s->id.data, s->id.len);
	appendStringInfo(out, ":{\"algorithm\":\"sha256\",\"version\":1,\"encoding\":\"hex\",\"digest\":\"%s\"}", digest);
}

static void
append_cursors(StringInfo out, const SynPull *pull, const Answer *page)
{
	SynCursor	c = {
		.lsn = pull->boundary, .event = SYN_END_EVENT, .effect = SYN_END_EFFECT, .stream = pull->stream,
		.client_generation = pull->client_generation, .issued = GetCurrentTransactionStartTimestamp() + UNIX_EPOCH,
		.user = pull->user, .client = pull->client_id, .schema_hash = pull->schema_hash
	};

	for (int i = 0; i < pull->nscopes; i++)
	{
		const SynPullScope *s = &pull->scopes[i];
		text	   *token;

		if (page->more)
		{
			c.lsn = page->cursors[i].lsn;
			c.event = page->cursors[i].event;
			c.effect = page->cursors[i].effect;
		}
		c.scope = s->id;
		c.membership = s->membership;
		c.retention = s->retention;
		token = syn_cursor_seal(&c);
		if (i > 0)
			appendStringInfoChar(out, ',');
		jcs_append_string(out, s->id.data, s->id.len);
		appendStringInfoString(out, ":\"");
		appendBinaryStringInfo(out, VARDATA_ANY(token), VARSIZE_ANY_EXHDR(token));	/* URL-safe */
		appendStringInfoChar(out, '"');
	}
}

static void
append_answer(StringInfo out, const SynPull *pull, const Answer *page)
{
	appendStringInfoString(out, "{\"changes\":[");
	appendBinaryStringInfo(out, page->changes.data, page->changes.len);
	appendStringInfo(out, "],\"scope_set_version\":" INT64_FORMAT ",\"scope_cursors\":{", pull->set_version);
	append_cursors(out, pull, page);
	appendStringInfo(out, "},\"scope_updates\":{\"add\":[],\"remove\":[]},\"rebuild\":[],\"has_more\":%s", page->more ? "true" : "false");
	if (!page->more)
	{
		appendStringInfoString(out, ",\"checksums\":{");
		for (int i = 0; i < pull->nscopes; i++)
		{
			if (i > 0)
				appendStringInfoChar(out, ',');
			append_checksum(out, pull, &pull->scopes[i]);
		}
		appendStringInfoChar(out, '}');
	}
	appendStringInfoChar(out, '}');
}

static int
compare_numbers(const void *x, const void *y)
{
	int64		a = DatumGetInt64(*(const Datum *) x);
	int64		b = DatumGetInt64(*(const Datum *) y);

	return a < b ? -1 : a > b;
}

/* Numbers of the scopes, each once; 0 for one without a number. */
static Datum
wait_on(const SynPull *pull)
{
	Datum	   *numbers = palloc(Max(pull->nscopes, 1) * sizeof(Datum));
	int			n = 0;

	for (int i = 0; i < pull->nscopes; i++)
		numbers[i] = Int64GetDatum(pull->scopes[i].number);
	qsort(numbers, pull->nscopes, sizeof(Datum), compare_numbers);
	for (int i = 0; i < pull->nscopes; i++)
		if (n == 0 || compare_numbers(&numbers[n - 1], &numbers[i]) != 0)
			numbers[n++] = numbers[i];
	return PointerGetDatum(construct_array(numbers, n, INT8OID, sizeof(int64), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

bool
syn_pull_answer(SynPull *pull, text **body, Datum *waits)
{
	Answer		page = {.more = false};
	StringInfoData answer;

	if (!syn_pull_assignment(pull))
		return false;
	find_changes(pull, &page);
	if (pull->acknowledges)
		acknowledge(pull);
	if (!page.more)
		find_digests(pull);
	initStringInfo(&answer);
	append_answer(&answer, pull, &page);
	*body = cstring_to_text_with_len(answer.data, answer.len);
	*waits = page.changes.len == 0 && !page.more ? wait_on(pull) : (Datum) 0;
	/* What was written may be lost: acknowledgements come again, digests are computed again. */
	if (TransactionIdIsValid(GetCurrentTransactionIdIfAny()))
		(void) set_config_option("synchronous_commit", "off", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0, false);
	return true;
}
