/*
 * core_config.c - payload of the configuration and limits frames (cgo/core_abi.h), and the ways into our own server
 */
#include "postgres.h"

#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "postmaster/postmaster.h"
#include "utils/timestamp.h"
#include "utils/varlena.h"

#include "core_config.h"
#include "guc.h"

/* Appends "name NUL value NUL". */
static void
append_pair(StringInfo buf, const char *name, const char *value)
{
	appendBinaryStringInfo(buf, name, strlen(name) + 1);
	appendBinaryStringInfo(buf, value, strlen(value) + 1);
}

static void
append_number(StringInfo buf, const char *name, int64 value)
{
	char		text[32];

	snprintf(text, sizeof(text), INT64_FORMAT, value);
	append_pair(buf, name, text);
}

/* Appends keyword='value' in the quoting of connection strings. */
static void
append_keyword(StringInfo buf, const char *keyword, const char *value)
{
	appendStringInfo(buf, "%s='", keyword);
	for (const char *c = value; *c; c++)
	{
		if (*c == '\'' || *c == '\\')
			appendStringInfoChar(buf, '\\');
		appendStringInfoChar(buf, *c);
	}
	appendStringInfoString(buf, "' ");
}

/* Appends one way in.  The password is never sent in the clear, whatever the other side asks for. */
static void
append_candidate(StringInfo buf, const char *host, const char *login, const char *password)
{
	StringInfoData conninfo;

	initStringInfo(&conninfo);
	append_keyword(&conninfo, "host", host);
	append_keyword(&conninfo, "user", login);
	append_keyword(&conninfo, "password", password);
	appendStringInfo(&conninfo, "port=%d sslmode=prefer require_auth='scram-sha-256,none'", PostPortNumber);
	append_pair(buf, "conninfo", conninfo.data);
	explicit_bzero(conninfo.data, conninfo.len);
	pfree(conninfo.data);
}

/* The address at which a server that listens on address is reached from its own machine. */
static const char *
own_address(const char *address)
{
	if (strcmp(address, "*") == 0 || strcmp(address, "0.0.0.0") == 0 || pg_strcasecmp(address, "localhost") == 0)
		return "127.0.0.1";
	if (strcmp(address, "::") == 0)
		return "::1";
	return address;
}

/* Appends our unix sockets, then our TCP addresses. */
static void
append_candidates(StringInfo buf, const char *login, const char *password)
{
	List	   *names = NIL;
	ListCell   *lc;

	if (SplitDirectoriesString(pstrdup(Unix_socket_directories), ',', &names))
	{
		foreach(lc, names)
		{
			/* not one in the abstract namespace, which the core's driver doesn't know */
			if (is_absolute_path((char *) lfirst(lc)))
				append_candidate(buf, lfirst(lc), login, password);
		}
	}
	names = NIL;
	if (ListenAddresses && SplitGUCList(pstrdup(ListenAddresses), ',', &names))
	{
		foreach(lc, names)
			append_candidate(buf, own_address(lfirst(lc)), login, password);
	}
}

void
synchro_slot_name(char *name)
{
	if (synchro_replication_slot[0])
		strlcpy(name, synchro_replication_slot, NAMEDATALEN);
	else
		snprintf(name, NAMEDATALEN, "synchro_%u", MyDatabaseId);
}

void
synchro_config_identity(StringInfo buf, const char *database, const char *login, const char *password)
{
	char		slot[NAMEDATALEN];
	int64		epoch_shift = (int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY;

	if (synchro_worker_conninfo[0])
		append_pair(buf, "conninfo", synchro_worker_conninfo);
	else
		append_candidates(buf, login, password);
	synchro_slot_name(slot);
	append_pair(buf, "slot", slot);
	append_pair(buf, "database", database);
	append_pair(buf, "publication", synchro_publication_name);
	append_number(buf, "started_at", PgStartTime + epoch_shift);
}

void
synchro_config_limits(StringInfo buf)
{
	append_number(buf, "max_worker_heartbeat_age_seconds", synchro_max_worker_heartbeat_age);
	append_number(buf, "max_wal_lag_bytes", (int64) synchro_max_wal_lag_bytes);
	append_number(buf, "max_wal_lag_seconds", synchro_max_wal_lag_seconds);
	append_number(buf, "stale_client_after", synchro_stale_client_after);
	append_number(buf, "compact_schedule", synchro_compact_period());
	append_number(buf, "backfill_batch_size", synchro_backfill_batch_size);
	append_number(buf, "max_row_bytes", synchro_max_row_bytes);
	append_number(buf, "batch_max_rows", synchro_batch_max_rows);
	append_number(buf, "batch_max_bytes", synchro_batch_max_bytes);
	append_number(buf, "worker_memory_limit", (int64) synchro_worker_memory_limit * 1024 * 1024);
}
