/*
 * pull_state.c
 *		What a pull in good order is answered from: its client, the boundary, its scopes.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/pg_lsn.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "lookup.h"
#include "pull_state.h"

#define ACKNOWLEDGED_FOR (60 * USECS_PER_SEC)	/* as in _acknowledge */

SynText
syn_text_value(Datum value)
{
	text	   *copy = DatumGetTextPCopy(value);
	SynText		result = {VARDATA(copy), VARSIZE(copy) - VARHDRSZ};

	return result;
}

bool
syn_same_text(SynText a, SynText b)
{
	return a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}

int
syn_compare_texts(const void *x, const void *y)
{
	const SynText *a = x;
	const SynText *b = y;
	int			diff = memcmp(a->data, b->data, Min(a->len, b->len));

	return diff != 0 ? diff : a->len - b->len;
}

int
syn_compare_positions(XLogRecPtr lsn, int64 event, int32 effect, XLogRecPtr lsn2, int64 event2, int32 effect2)
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
bool
syn_pull_client(SynPull *pull)
{
	SynLookup	row;
	bool		found;

	syn_lookup_open(&row, "client", "client_client_id_key");
	syn_lookup_text(&row, pull->client_id.data, pull->client_id.len);
	syn_lookup_begin(&row);
	found = syn_lookup_next(&row) && syn_same_text(syn_text_value(syn_lookup_value(&row, "user_id")), pull->user);
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
bool
syn_pull_boundary(SynPull *pull)
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
		pull->schema_hash = syn_text_value(syn_lookup_value(&row, "schema_hash"));
	syn_lookup_close(&row);
	return good;
}

/* The scopes that are recorded as assigned. */
static void
find_scopes(SynPull *pull)
{
	SynLookup	row;
	int			room = 16;

	pull->scopes = palloc0(room * sizeof(SynPullScope));
	syn_lookup_open(&row, "client_scope", "client_scope_pkey");
	syn_lookup_int8(&row, pull->client_no);
	syn_lookup_begin(&row);
	while (syn_lookup_next(&row))
	{
		SynPullScope	   *s;

		if (!DatumGetBool(syn_lookup_value(&row, "assigned")))
			continue;
		if (pull->nscopes == room)
		{
			pull->scopes = repalloc(pull->scopes, 2 * room * sizeof(SynPullScope));
			memset(pull->scopes + room, 0, room * sizeof(SynPullScope));
			room *= 2;
		}
		s = &pull->scopes[pull->nscopes++];
		s->id = syn_text_value(syn_lookup_value(&row, "scope_id"));
		read_position(&row, "ack", &s->ack_lsn, &s->ack_event, &s->ack_effect);
		s->membership = s->retention = 1;
	}
	syn_lookup_close(&row);
}

/* What is materialized of the scopes, and the digests that are in the cache. */
static void
find_state(SynPull *pull)
{
	SynLookup	scope;
	SynLookup	cache;

	syn_lookup_open(&scope, "scope", "scope_scope_id_key");
	syn_lookup_open(&cache, "scope_digest_cache", "scope_digest_cache_pkey");
	for (int i = 0; i < pull->nscopes; i++)
	{
		SynPullScope *s = &pull->scopes[i];

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
		if (syn_lookup_next(&cache) && DatumGetLSN(syn_lookup_value(&cache, "high_lsn")) == s->high)
			s->digest = pnstrdup(syn_text_value(syn_lookup_value(&cache, "digest")).data, 64);
	}
	syn_lookup_close(&cache);
	syn_lookup_close(&scope);
}

void
syn_pull_scopes(SynPull *pull)
{
	SynLookup	row;

	find_scopes(pull);
	find_state(pull);
	syn_lookup_open(&row, "assignment_function", "assignment_function_pkey");
	syn_lookup_begin(&row);
	pull->assigns = syn_lookup_next(&row);
	syn_lookup_close(&row);
}

/* Are these the scopes that the user has now? As _reconcile_assignment finds them. */
bool
syn_pull_assignment(const SynPull *pull)
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
		SynText		id = syn_text_value(syn_lookup_value(&row, "scope_id"));

		if (DatumGetBool(syn_lookup_value(&row, "granted")))
			ADD(id);
		else if (syn_same_text(id, (SynText) {name.data, name.len}))
			own = false;
	}
	syn_lookup_close(&row);
	if (own)
		ADD(((SynText) {name.data, name.len}));

	syn_lookup_open(&row, "shared_scope", "shared_scope_pkey");
	syn_lookup_begin(&row);
	while (syn_lookup_next(&row))
		ADD(syn_text_value(syn_lookup_value(&row, "scope_id")));
	syn_lookup_close(&row);

	if (pull->assigns)
	{
		MemoryContext caller = CurrentMemoryContext;
		Oid			types[1] = {TEXTOID};
		Datum		user = PointerGetDatum(cstring_to_text_with_len(pull->user.data, pull->user.len));

		SPI_connect();
		if (SPI_execute_with_args("SELECT a FROM synchro._evaluate_assignment($1) a", 1, types, &user, NULL, true, 0) != SPI_OK_SELECT)
			elog(ERROR, "could not evaluate the assignment function");
		for (uint64 i = 0; i < SPI_processed; i++)
		{
			bool		isnull;
			Datum		value = SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1, &isnull);
			MemoryContext old = MemoryContextSwitchTo(caller);

			ADD(syn_text_value(value));
			MemoryContextSwitchTo(old);
		}
		SPI_finish();
	}
#undef ADD

	qsort(ids, n, sizeof(SynText), syn_compare_texts);
	for (int i = 0; i < n; i++)
	{
		if (i > 0 && syn_same_text(ids[i], ids[i - 1]))
			continue;
		if (distinct == pull->nscopes || !syn_same_text(ids[i], pull->scopes[distinct].id))
			return false;
		distinct++;
	}
	return distinct == pull->nscopes;
}
