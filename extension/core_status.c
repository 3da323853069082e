/*
 * core_status.c - strict reader of status lines, and the hints
 */
#include "postgres.h"

#include "core_status.h"

#define WORD_CHARS "abcdefghijklmnopqrstuvwxyz_"
#define SQLSTATE_CHARS "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"

static const struct
{
	const char *error_class;
	const char *hint;
}			hints[] =
{
	{"connection_failed", "The core connects to the server's unix socket, then to loopback; see synchro.worker_conninfo."},
	{"login_refused", "Allow the worker's login in pg_hba.conf, or set synchro.worker_conninfo."},
	{"too_many_connections", "Raise max_connections: the core needs a few connections of its own."},
	{"invalid_conninfo", "Correct synchro.worker_conninfo."},
	{"wrong_server", "synchro.worker_conninfo must lead to this server."},
	{"object_in_use", "Another process uses the replication slot; see pg_replication_slots."},
	{"slot_foreign", "Name another slot in synchro.replication_slot, or drop the one that is there."},
	{"slot_active", "Another process streams from the worker's slot; see pg_replication_slots."},
	{"synchronous_standby", "Name the standbys in synchronous_standby_names: '*' makes the worker one of them."},
	{"stream_identity", "The database was restored or promoted: positions mean something else here. After pg_restore register again and call synchro_accept_restore(), else create the extension anew: docs/operations.md."},
	{"taken_over", "Another worker serves this database."},
	{"fence_key_missing", "Restore the active key of purpose fence in synchro.secret_key."},
	{"host_mismatch", "Install the library and the core of one version, then restart the server."},
};

bool
synchro_status_parse(const char *line, SynchroStatus *status)
{
	const char *rest;
	size_t		length;

	if (strncmp(line, "state ", 6) == 0)
		status->is_error = false;
	else if (strncmp(line, "error ", 6) == 0)
		status->is_error = true;
	else
		return false;

	rest = line + 6;
	length = strspn(rest, WORD_CHARS);
	if (length == 0 || length > SYNCHRO_STATUS_WORD)
		return false;
	strlcpy(status->word, rest, length + 1);
	rest += length;
	if (!status->is_error)
		return *rest == '\0';

	if (*rest++ != ' ' || strlen(rest) != 5 || strspn(rest, SQLSTATE_CHARS) != 5)
		return false;
	strlcpy(status->sqlstate, rest, sizeof(status->sqlstate));
	return true;
}

const char *
synchro_status_hint(const char *error_class)
{
	for (int i = 0; i < lengthof(hints); i++)
		if (strcmp(hints[i].error_class, error_class) == 0)
			return hints[i].hint;
	return NULL;
}
