/*
 * pull_quiet.c
 *		The answer to a pull that brings nothing, which is what most pulls do.
 *
 * It says what _pull (sql/functions/_pull.sql) would say, without statements and plans, and only where nothing has to be judged,
 * written or rendered: the client is confirmed, its cursors are good and at the end, its scopes are the ones assigned, their digests
 * are in the cache, nothing is to be acknowledged. In every other case it says nothing, and _pull decides.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/pg_lsn.h"
#include "utils/timestamp.h"

#include "canonical_scope.h"
#include "compat.h"
#include "cursor.h"
#include "jcs.h"
#include "lookup.h"
#include "request.h"

#define ACKNOWLEDGED_FOR (60 * USECS_PER_SEC)	/* as in _acknowledge */
#define UNIX_EPOCH ((POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY)

/* A scope of the client and what is known of it. */
typedef struct Scope
{
	SynText		id;
	XLogRecPtr	ack_lsn;		/* acknowledged position */
	int64		ack_event;
	int32		ack_effect;
	int64		number;			/* 0: no effect so far */
	int64		membership;
	int64		retention;
	XLogRecPtr	floor_lsn;
	int64		floor_event;
	int32		floor_effect;
	XLogRecPtr	high;
	const char *digest;			/* 64 hexadecimal digits */
} Scope;

typedef struct Pull
{
	SynText		user;
	SynText		client_id;
	int64		client_no;
	int64		client_generation;
	int64		set_version;
	bool		seen;			/* its last acknowledgement is recent */
	int64		stream;
	int64		schema_version;
	SynText		schema_hash;
	XLogRecPtr	boundary;
	Scope	   *scopes;			/* assigned, in the order of their ids' octets */
	int			nscopes;
} Pull;

PG_FUNCTION_INFO_V1(synchro_pull_quiet);

static SynText
text_value(Datum value)
{
	text	   *copy = DatumGetTextPCopy(value);
	SynText		result = {VARDATA(copy), VARSIZE(copy) - VARHDRSZ};

	return result;
}

static SynText
node_text(const JcsNode *node)
{
	SynText		result = {node->u.str, node->len};

	return result;
}

static bool
same(SynText a, SynText b)
{
	return a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}

static int
compare_texts(const void *x, const void *y)
{
	const SynText *a = x;
	const SynText *b = y;
	int			diff = memcmp(a->data, b->data, Min(a->len, b->len));

	return diff != 0 ? diff : a->len - b->len;
}

static int
compare_positions(XLogRecPtr lsn, int64 event, int32 effect, XLogRecPtr lsn2, int64 event2, int32 effect2)
{
	if (lsn != lsn2)
		return lsn < lsn2 ? -1 : 1;
	if (event != event2)
		return event < event2 ? -1 : 1;
	return effect < effect2 ? -1 : effect > effect2;
}

/* A position stored as kind and three columns, as views.sql reads it. */
static void
read_position(const SynLookup *row, const char *prefix, XLogRecPtr *lsn, int64 *event, int32 *effect)
{
	char		name[NAMEDATALEN];
	text	   *kind;
	Datum		value;
	bool		isnull;

	snprintf(name, sizeof(name), "%s_kind", prefix);
	kind = DatumGetTextPP(syn_lookup_value(row, name));
	snprintf(name, sizeof(name), "%s_lsn", prefix);
	value = syn_lookup_get(row, name, &isnull);
	*lsn = isnull ? InvalidXLogRecPtr : DatumGetLSN(value);
	switch (*VARDATA_ANY(kind))
	{
		case 'g':
			*event = SYN_START_EVENT;
			*effect = SYN_START_EVENT;
			break;
		case 'e':
			snprintf(name, sizeof(name), "%s_event", prefix);
			*event = DatumGetInt64(syn_lookup_value(row, name));
			snprintf(name, sizeof(name), "%s_effect", prefix);
			*effect = DatumGetInt32(syn_lookup_value(row, name));
			break;
		default:
			*event = SYN_END_EVENT;
			*effect = SYN_END_EFFECT;
	}
}

/* The client, if it is this user's, in order, and nothing about it has to be written. */
static bool
find_client(Pull *pull)
{
	SynLookup	row;
	bool		found;

	syn_lookup_open(&row, "client", "client_client_id_key");
	syn_lookup_text(&row, pull->client_id.data, pull->client_id.len);
	syn_lookup_begin(&row);
	found = syn_lookup_next(&row) && same(text_value(syn_lookup_value(&row, "user_id")), pull->user);
	if (found)
	{
		bool		never_retired;
		bool		never_seen;
		TimestampTz seen;

		(void) syn_lookup_get(&row, "retired_at", &never_retired);
		seen = DatumGetTimestampTz(syn_lookup_get(&row, "last_acknowledged_at", &never_seen));
		pull->seen = !never_seen && seen >= GetCurrentTransactionStartTimestamp() - ACKNOWLEDGED_FOR;
		pull->client_no = DatumGetInt64(syn_lookup_value(&row, "client_no"));
		pull->client_generation = DatumGetInt64(syn_lookup_value(&row, "client_generation"));
		pull->set_version = DatumGetInt64(syn_lookup_value(&row, "scope_set_version"));
		found = never_retired && DatumGetBool(syn_lookup_value(&row, "confirmed")) && !DatumGetBool(syn_lookup_value(&row, "expired"));
		if (found)
		{
			int64		epoch = DatumGetInt64(syn_lookup_value(&row, "accepted_write_epoch"));

			if (epoch > 0)
			{
				SynLookup	done;

				syn_lookup_open(&done, "client_materialized", "client_materialized_pkey");
				syn_lookup_int8(&done, pull->client_no);
				syn_lookup_begin(&done);
				found = syn_lookup_next(&done) && DatumGetInt64(syn_lookup_value(&done, "write_epoch")) >= epoch;
				syn_lookup_close(&done);
			}
		}
	}
	syn_lookup_close(&row);
	return found;
}

/* The boundary, if this server's capture is in order. */
static bool
find_boundary(Pull *pull)
{
	SynLookup	row;
	bool		good;

	syn_lookup_open(&row, "quarantine", "quarantine_open");
	syn_lookup_begin(&row);
	good = !syn_lookup_next(&row);
	syn_lookup_close(&row);
	if (!good)
		return false;

	syn_lookup_open(&row, "progress", "progress_pkey");
	syn_lookup_begin(&row);
	good = syn_lookup_next(&row) &&
		DatumGetInt64(syn_lookup_value(&row, "system_identifier")) == (int64) GetSystemIdentifier() &&
		!RecoveryInProgress() &&
		DatumGetInt32(syn_lookup_value(&row, "timeline")) == (int32) GetWALInsertionTimeLine() &&
		DatumGetObjectId(syn_lookup_value(&row, "database_oid")) == MyDatabaseId;
	if (good)
	{
		pull->stream = DatumGetInt64(syn_lookup_value(&row, "stream_generation"));
		pull->schema_version = DatumGetInt64(syn_lookup_value(&row, "schema_version"));
		pull->boundary = DatumGetLSN(syn_lookup_value(&row, "commit_lsn"));
	}
	syn_lookup_close(&row);
	if (!good)
		return false;

	syn_lookup_open(&row, "manifest", "manifest_pkey");
	syn_lookup_int8(&row, pull->schema_version);
	syn_lookup_begin(&row);
	good = syn_lookup_next(&row);
	if (good)
		pull->schema_hash = text_value(syn_lookup_value(&row, "schema_hash"));
	syn_lookup_close(&row);
	return good;
}

/* The scopes that are recorded as assigned. */
static void
find_scopes(Pull *pull)
{
	SynLookup	row;
	int			room = 16;

	pull->scopes = palloc0(room * sizeof(Scope));
	syn_lookup_open(&row, "client_scope", "client_scope_pkey");
	syn_lookup_int8(&row, pull->client_no);
	syn_lookup_begin(&row);
	while (syn_lookup_next(&row))
	{
		Scope	   *s;

		if (!DatumGetBool(syn_lookup_value(&row, "assigned")))
			continue;
		if (pull->nscopes == room)
		{
			pull->scopes = repalloc(pull->scopes, 2 * room * sizeof(Scope));
			memset(pull->scopes + room, 0, room * sizeof(Scope));
			room *= 2;
		}
		s = &pull->scopes[pull->nscopes++];
		s->id = text_value(syn_lookup_value(&row, "scope_id"));
		read_position(&row, "ack", &s->ack_lsn, &s->ack_event, &s->ack_effect);
		s->membership = s->retention = 1;
	}
	syn_lookup_close(&row);
}

/* Are these the scopes that the user has now? As _reconcile_assignment finds them. */
static bool
assignment_unchanged(const Pull *pull, Datum user)
{
	SynLookup	row;
	SynText    *ids;
	int			n = 0;
	int			room = pull->nscopes + 16;
	int			distinct = 0;
	bool		own = true;
	StringInfoData name;

#define ADD(id) \
	do { \
		if (n == room) \
			ids = repalloc(ids, (room *= 2) * sizeof(SynText)); \
		ids[n++] = (id); \
	} while (0)

	initStringInfo(&name);
	appendStringInfoString(&name, "user:");
	appendBinaryStringInfo(&name, pull->user.data, pull->user.len);
	ids = palloc(room * sizeof(SynText));

	syn_lookup_open(&row, "user_scope", "user_scope_pkey");
	syn_lookup_text(&row, pull->user.data, pull->user.len);
	syn_lookup_begin(&row);
	while (syn_lookup_next(&row))
	{
		SynText		id = text_value(syn_lookup_value(&row, "scope_id"));

		if (DatumGetBool(syn_lookup_value(&row, "granted")))
			ADD(id);
		else if (same(id, (SynText) {name.data, name.len}))
			own = false;
	}
	syn_lookup_close(&row);
	if (own)
		ADD(((SynText) {name.data, name.len}));

	syn_lookup_open(&row, "shared_scope", "shared_scope_pkey");
	syn_lookup_begin(&row);
	while (syn_lookup_next(&row))
		ADD(text_value(syn_lookup_value(&row, "scope_id")));
	syn_lookup_close(&row);

	syn_lookup_open(&row, "assignment_function", "assignment_function_pkey");
	syn_lookup_begin(&row);
	if (syn_lookup_next(&row))
	{
		MemoryContext caller = CurrentMemoryContext;
		Oid			types[1] = {TEXTOID};

		SPI_connect();
		if (SPI_execute_with_args("SELECT a FROM synchro._evaluate_assignment($1) a", 1, types, &user, NULL, true, 0) != SPI_OK_SELECT)
			elog(ERROR, "could not evaluate the assignment function");
		for (uint64 i = 0; i < SPI_processed; i++)
		{
			bool		isnull;
			Datum		value = SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1, &isnull);
			MemoryContext old = MemoryContextSwitchTo(caller);

			ADD(text_value(value));
			MemoryContextSwitchTo(old);
		}
		SPI_finish();
	}
	syn_lookup_close(&row);
#undef ADD

	qsort(ids, n, sizeof(SynText), compare_texts);
	for (int i = 0; i < n; i++)
	{
		if (i > 0 && same(ids[i], ids[i - 1]))
			continue;
		if (distinct == pull->nscopes || !same(ids[i], pull->scopes[distinct].id))
			return false;
		distinct++;
	}
	return distinct == pull->nscopes;
}

/* What is materialized of the scopes; false: some digest is not in the cache. */
static bool
find_state(Pull *pull)
{
	SynLookup	scope;
	SynLookup	cache;
	bool		good = true;

	syn_lookup_open(&scope, "scope", "scope_scope_id_key");
	syn_lookup_open(&cache, "scope_digest_cache", "scope_digest_cache_pkey");
	for (int i = 0; i < pull->nscopes && good; i++)
	{
		Scope	   *s = &pull->scopes[i];

		syn_lookup_text(&scope, s->id.data, s->id.len);
		syn_lookup_begin(&scope);
		if (!syn_lookup_next(&scope))
			continue;
		s->number = DatumGetInt64(syn_lookup_value(&scope, "scope_no"));
		s->membership = DatumGetInt64(syn_lookup_value(&scope, "membership_generation"));
		s->retention = DatumGetInt64(syn_lookup_value(&scope, "retention_generation"));
		s->high = DatumGetLSN(syn_lookup_value(&scope, "high_lsn"));
		read_position(&scope, "floor", &s->floor_lsn, &s->floor_event, &s->floor_effect);

		syn_lookup_int8(&cache, s->number);
		syn_lookup_int8(&cache, pull->schema_version);
		syn_lookup_begin(&cache);
		good = syn_lookup_next(&cache) && DatumGetLSN(syn_lookup_value(&cache, "high_lsn")) == s->high;
		if (good)
			s->digest = pnstrdup(text_value(syn_lookup_value(&cache, "digest")).data, 64);
	}
	syn_lookup_close(&cache);
	syn_lookup_close(&scope);
	return good;
}

/* Is the presented cursor good, at the end of its scope, and nothing to acknowledge by it? */
static bool
is_quiet(const Pull *pull, const Scope *s, const JcsNode *token)
{
	SynCursor	c;

	if (token == NULL || token->kind != JCS_STRING || !syn_cursor_open(cstring_to_text_with_len(token->u.str, token->len), &c) ||
		!same(c.user, pull->user) || !same(c.client, pull->client_id) || !same(c.scope, s->id) || !same(c.schema_hash, pull->schema_hash) ||
		c.stream != pull->stream || c.client_generation != pull->client_generation || c.membership != s->membership ||
		c.retention != s->retention)
		return false;
	if (s->number != 0 &&
		(compare_positions(c.lsn, c.event, c.effect, s->floor_lsn, s->floor_event, s->floor_effect) < 0 ||
		 s->high > c.lsn || (s->high == c.lsn && c.event < SYN_END_EVENT)))
		return false;
	if (compare_positions(c.lsn, c.event, c.effect, pull->boundary, SYN_END_EVENT, SYN_END_EFFECT) > 0)
		return false;
	if (compare_positions(c.lsn, c.event, c.effect, s->ack_lsn, s->ack_event, s->ack_effect) <= 0)
		return true;
	/* The conditions under which _acknowledge leaves a checkpoint and the client's row alone. */
	return s->ack_event == SYN_END_EVENT && (s->number == 0 || s->high <= s->ack_lsn) && pull->seen;
}

static void
append_checksum(StringInfo out, const Pull *pull, const Scope *s)
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
append_answer(StringInfo out, const Pull *pull)
{
	SynCursor	c = {
		.lsn = pull->boundary, .event = SYN_END_EVENT, .effect = SYN_END_EFFECT, .stream = pull->stream,
		.client_generation = pull->client_generation, .issued = GetCurrentTransactionStartTimestamp() + UNIX_EPOCH,
		.user = pull->user, .client = pull->client_id, .schema_hash = pull->schema_hash
	};

	appendStringInfo(out, "{\"changes\":[],\"scope_set_version\":" INT64_FORMAT ",\"scope_cursors\":{", pull->set_version);
	for (int i = 0; i < pull->nscopes; i++)
	{
		const Scope *s = &pull->scopes[i];
		text	   *token;

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
	appendStringInfoString(out, "},\"scope_updates\":{\"add\":[],\"remove\":[]},\"rebuild\":[],\"has_more\":false,\"checksums\":{");
	for (int i = 0; i < pull->nscopes; i++)
	{
		if (i > 0)
			appendStringInfoChar(out, ',');
		append_checksum(out, pull, &pull->scopes[i]);
	}
	appendStringInfoString(out, "}}");
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
wait_on(const Pull *pull)
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

/* Is the request for this client generation, schema and set, and for exactly these scopes, each of which has nothing new? */
static bool
asks_for_nothing_new(const Pull *pull, const JcsNode *request)
{
	const JcsNode *schema = jcs_member(request, "schema");
	const JcsNode *scopes = jcs_member(request, "scopes");
	int64		n;

	if (!jcs_integer(jcs_member(request, "client_generation"), &n) || n != pull->client_generation ||
		!jcs_integer(jcs_member(schema, "version"), &n) || n != pull->schema_version ||
		!same(node_text(jcs_member(schema, "hash")), pull->schema_hash) ||
		!jcs_integer(jcs_member(request, "scope_set_version"), &n) || n > pull->set_version ||
		scopes->len != pull->nscopes)
		return false;
	for (int i = 0; i < scopes->len; i++)
	{
		const JcsMember *m = &scopes->u.members[i];
		SynText		id = {m->name, m->namelen};
		const Scope *s = bsearch(&id, pull->scopes, pull->nscopes, sizeof(Scope), compare_texts);

		if (s == NULL || !is_quiet(pull, s, jcs_member(m->value, "cursor")))
			return false;
	}
	return true;
}

/* Reads what the answer is made of; false: there may be something to say, to write or to refuse. */
static bool
is_silent(Pull *pull, text *user, text *body)
{
	JcsError	error;
	JcsNode    *request = jcs_parse(text_to_cstring(body), VARSIZE_ANY_EXHDR(body), 0, &error);
	JcsNode    *client = request && request->kind == JCS_OBJECT ? jcs_member(request, "client_id") : NULL;

	if (client == NULL || client->kind != JCS_STRING)
		return false;
	pull->user = (SynText) {VARDATA_ANY(user), VARSIZE_ANY_EXHDR(user)};
	pull->client_id = node_text(client);
	if (!find_client(pull))
		return false;
	check_pull(request);		/* raises: whose client it is comes before the shape, and nothing else does */
	if (!find_boundary(pull))
		return false;
	find_scopes(pull);
	return find_state(pull) && asks_for_nothing_new(pull, request) && assignment_unchanged(pull, PointerGetDatum(user));
}

/* _pull_quiet(user_id text, request text, OUT body text, OUT wait_on bigint[]): NULLs where _pull has to decide. */
Datum
synchro_pull_quiet(PG_FUNCTION_ARGS)
{
	TupleDesc	desc;
	Pull		pull = {0};
	Datum		values[2] = {0};
	bool		nulls[2] = {true, true};

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "_pull_quiet is declared wrongly");
	if (!PG_ARGISNULL(0) && !PG_ARGISNULL(1) && IsolationUsesXactSnapshot() &&
		is_silent(&pull, PG_GETARG_TEXT_PP(0), PG_GETARG_TEXT_PP(1)))
	{
		StringInfoData answer;

		initStringInfo(&answer);
		append_answer(&answer, &pull);
		values[0] = PointerGetDatum(cstring_to_text_with_len(answer.data, answer.len));
		values[1] = wait_on(&pull);
		nulls[0] = nulls[1] = false;
	}
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}
