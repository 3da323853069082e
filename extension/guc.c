/*
 * guc.c - definition and validation of the settings
 *
 * PostgreSQL replaces an unusable value of a library's setting by the default and only warns.  A sync server that runs with
 * limits nobody chose is worse than one that refuses.  So every number is accepted here and the worker refuses to run with a
 * senseless one; it also asks pg_file_settings for values that could not even be parsed.  Nothing takes the server down.
 */
#include "postgres.h"

#include <limits.h>

#include "utils/guc.h"

#include "guc.h"
#include "semver.h"

char	   *synchro_database;
char	   *synchro_worker_login;
char	   *synchro_worker_conninfo;
char	   *synchro_replication_slot;
char	   *synchro_publication_name;
int			synchro_core_host;
char	   *synchro_core_library;
int			synchro_max_worker_heartbeat_age;
double		synchro_max_wal_lag_bytes;
int			synchro_max_wal_lag_seconds;
int			synchro_stale_client_after;
char	   *synchro_compact_schedule;
int			synchro_backfill_batch_size;
int			synchro_max_row_bytes;
int			synchro_batch_max_rows;
int			synchro_batch_max_bytes;
int			synchro_worker_memory_limit;
int			synchro_digest_memory;
bool		synchro_ddl_guard;
bool		synchro_verify_digests;
char	   *synchro_user_id;

static const struct config_enum_entry core_host_options[] = {
	{"process", SYNCHRO_HOST_PROCESS, false},
	{"in_process", SYNCHRO_HOST_IN_PROCESS, false},
	{NULL, 0, false}
};

/* The integer limits: one table for definition and check.  Those with their unit in the name show as plain numbers. */
typedef struct IntLimit
{
	const char *name;
	const char *description;
	int		   *variable;
	int			boot;
	int			max;			/* largest sensible value */
	int			unit;
	GucContext	context;
} IntLimit;

static const IntLimit int_limits[] = {
	{"synchro.max_worker_heartbeat_age_seconds", "Age of the worker's heartbeat above which the server is not ready.",
	&synchro_max_worker_heartbeat_age, 30, 86400, 0, PGC_SIGHUP},
	{"synchro.max_wal_lag_seconds", "Capture delay above which the server is not ready.",
	&synchro_max_wal_lag_seconds, 30, 86400, 0, PGC_SIGHUP},
	{"synchro.stale_client_after", "Time without contact after which a client's retained state may be compacted.",
	&synchro_stale_client_after, 30 * 86400, INT_MAX, GUC_UNIT_S, PGC_SIGHUP},
	{"synchro.backfill_batch_size", "Rows that one step evaluates while a changed rule is staged.",
	&synchro_backfill_batch_size, 1000, 1000, 0, PGC_SIGHUP},
	{"synchro.max_row_bytes", "Largest row that may be written to a registered table.",
	&synchro_max_row_bytes, 64 * 1024 * 1024, 256 * 1024 * 1024, GUC_UNIT_BYTE, PGC_SIGHUP},
	{"synchro.batch_max_rows", "Rows that one materializing transaction may gather.",
	&synchro_batch_max_rows, 10000, 1000000, 0, PGC_SIGHUP},
	{"synchro.batch_max_bytes", "Bytes of row images that one materializing transaction may gather.",
	&synchro_batch_max_bytes, 8 * 1024 * 1024, 1024 * 1024 * 1024, GUC_UNIT_BYTE, PGC_SIGHUP},
	{"synchro.worker_memory_limit", "Memory that the Go core of one database aims to stay under.",
	&synchro_worker_memory_limit, 192, 1024 * 1024, GUC_UNIT_MB, PGC_SIGHUP},
	{"synchro.digest_memory", "Shared memory for the rows that digests of scopes are computed from.",
	&synchro_digest_memory, 64, SYNCHRO_DIGEST_MEMORY_MAX, GUC_UNIT_MB, PGC_POSTMASTER},
};

static void
define_string(const char *name, const char *description, char **variable, const char *boot, GucContext context, int flags)
{
	DefineCustomStringVariable(name, description, NULL, variable, boot, context, flags, NULL, NULL, NULL);
}

/* Defines every setting; called once, in the postmaster. */
void
synchro_guc_init(void)
{
	define_string("synchro.database", "Databases that are synchronized, one worker each; empty: none.",
				  &synchro_database, "postgres", PGC_POSTMASTER, GUC_LIST_INPUT);
	define_string("synchro.worker_login", "Login role of the worker; empty: synchro_worker_<database oid>.",
				  &synchro_worker_login, "", PGC_SIGHUP, 0);
	define_string("synchro.worker_conninfo", "Connection string of the core instead of the one made by the server.",
				  &synchro_worker_conninfo, "", PGC_SIGHUP, GUC_SUPERUSER_ONLY | GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE);
	define_string("synchro.replication_slot", "Logical replication slot; empty: synchro_<database oid>.",
				  &synchro_replication_slot, "", PGC_SIGHUP, 0);
	define_string("synchro.publication_name", "Publication of the registered tables.",
				  &synchro_publication_name, "synchro", PGC_SIGHUP, 0);
	define_string("synchro.min_client_version", "Clients whose app_version is lower are told to upgrade; empty: none.",
				  &semver_minimum, "", PGC_SIGHUP, 0);
	define_string("synchro.core_library", "Library of the Go core, in the server's library directory.",
				  &synchro_core_library, "synchro_core", PGC_POSTMASTER, GUC_SUPERUSER_ONLY | GUC_NOT_IN_SAMPLE);
	define_string("synchro.compact_schedule", "Time between two compactions, or off.",
				  &synchro_compact_schedule, "1h", PGC_SIGHUP, 0);
	define_string("synchro.user_id", "User whose push is being applied, for policies to read.",
				  &synchro_user_id, "", PGC_USERSET, GUC_NOT_IN_SAMPLE | GUC_NO_RESET_ALL | GUC_DISALLOW_IN_FILE);
	DefineCustomEnumVariable("synchro.core_host", "Where the Go core runs.",
							 "process: a failure of the core restarts only the core; in_process: it restarts the server.",
							 &synchro_core_host, SYNCHRO_HOST_PROCESS, core_host_options,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("synchro.ddl_guard", "Refuse schema changes that would break a registered table.", NULL,
							 &synchro_ddl_guard, true, PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("synchro.verify_digests", "Compare every digest made of kept rows with the stored entries.",
							 "For tests, and for a server that is under suspicion: it costs what keeping rows saves.",
							 &synchro_verify_digests, false, PGC_SIGHUP, 0, NULL, NULL, NULL);
	/* The one limit that needs more than 31 bits. */
	DefineCustomRealVariable("synchro.max_wal_lag_bytes", "WAL not yet captured above which the server is not ready.", NULL,
							 &synchro_max_wal_lag_bytes, 64.0 * 1024 * 1024, -9e15, 9e15,
							 PGC_SIGHUP, GUC_UNIT_BYTE, NULL, NULL, NULL);
	for (int i = 0; i < lengthof(int_limits); i++)
	{
		const IntLimit *l = &int_limits[i];

		DefineCustomIntVariable(l->name, l->description, NULL, l->variable, l->boot, INT_MIN, INT_MAX,
								l->context, l->unit, NULL, NULL, NULL);
	}
	MarkGUCPrefixReserved("synchro");
}

/* compact_schedule in seconds: 0 for off, -1 when it is neither off nor a positive time. */
int
synchro_compact_period(void)
{
	int			seconds;

	if (pg_strcasecmp(synchro_compact_schedule, "off") == 0)
		return 0;
	if (!parse_int(synchro_compact_schedule, &seconds, GUC_UNIT_S, NULL) || seconds <= 0)
		return -1;
	return seconds;
}

/* A name of 1 to NAMEDATALEN - 1 octets, from the characters of a slot name when told. */
static bool
valid_name(const char *name, bool is_slot)
{
	size_t		length = strlen(name);

	if (length == 0 || length >= NAMEDATALEN)
		return false;
	return !is_slot || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == length;
}

static bool
problem_is(SynchroConfigProblem *problem, const char *message, const char *hint)
{
	problem->message = message;
	problem->hint = hint;
	return true;
}

/* Finds the first thing that is wrong with the settings. */
bool
synchro_config_problem(SynchroConfigProblem *p)
{
	for (int i = 0; i < lengthof(int_limits); i++)
	{
		const IntLimit *l = &int_limits[i];

		if (*l->variable <= 0 || *l->variable > l->max)
			return problem_is(p, psprintf("%s is out of range", l->name),
							  psprintf("Set it to a value from 1 to %d, or remove it to use the default, and reload.", l->max));
	}
	if (!(synchro_max_wal_lag_bytes >= 1))
		return problem_is(p, "synchro.max_wal_lag_bytes is out of range",
						  "Set it to a positive number of bytes, or remove it to use the default, and reload.");
	if (synchro_compact_period() < 0)
		return problem_is(p, "synchro.compact_schedule is neither off nor a positive time",
						  "Set it to off or to a time such as '1h', and reload.");
	if (!valid_name(synchro_publication_name, false))
		return problem_is(p, "synchro.publication_name is no valid name",
						  psprintf("Set it to a name of 1 to %d octets, and reload.", NAMEDATALEN - 1));
	if (synchro_replication_slot[0] && !valid_name(synchro_replication_slot, true))
		return problem_is(p, "synchro.replication_slot is no valid slot name",
						  "Use lower case letters, digits and underscores, or remove it, and reload.");
	if (semver_minimum[0] && !semver_is_valid(semver_minimum, strlen(semver_minimum)))
		return problem_is(p, "synchro.min_client_version is no version",
						  "Set it to a version as in SemVer 2.0.0, or remove it, and reload. Until then no client is let in.");
	if (synchro_worker_login[0] && !valid_name(synchro_worker_login, false))
		return problem_is(p, "synchro.worker_login is no valid role name",
						  psprintf("Set it to a name of 1 to %d octets, or remove it, and reload.", NAMEDATALEN - 1));
	return false;
}
