/*
 * bgworker.c - the synchro worker: the loop that keeps one Go core in the state it should be in
 *
 * The loop compares what should be (a core, or a reason why not) with what is, and acts on the difference.  It wakes by its
 * latch, by the core's status pipe, and once a second to look at things that tell nobody: the extension, a smart shutdown.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/procsignal.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/pidfile.h"
#include "utils/timestamp.h"

#include "bgworker.h"
#include "core.h"
#include "core_config.h"
#include "core_status.h"
#include "credential.h"
#include "errcodes.h"
#include "guc.h"
#include "worker_catalog.h"
#include "worker_state.h"

PGDLLEXPORT void synchro_worker_main(Datum arg);

#define TICK_MS			1000	/* between two looks at the world */
#define RESTART_MS		1000	/* between two cores */
#define STOP_MS			1000	/* a core may take this long to stop */

/* Everything the loop knows. */
typedef struct Worker
{
	SynchroWorkerSlot *slot;
	bool		found_database;
	SynchroCore core;
	StringInfoData identity;	/* what the running core was started with */
	StringInfoData limits;		/* what it was last told */
	Oid			extension;		/* that the core was started for */
	char		slot_name[NAMEDATALEN];
	bool		has_streamed;	/* the core has worked with that slot, so it is ours */
	bool		protocol_broken;
	bool		go_loaded;		/* in_process: this process has had its core */
	bool		orphan_slot;	/* its extension is gone: drop the slot before anything else */
	TimestampTz not_before;		/* of the next core */
	TimestampTz last_look;
	Oid			seen_extension; /* at the last look; invalid: there is none */
	bool		server_stopping;
	bool		settings_changed;
	SynchroConfigProblem problem;	/* message NULL: the settings are fine */
	MemoryContext problem_context;
	char		logged[SYNCHRO_ERROR_LEN];	/* the complaint that is in the log already */
} Worker;

static Worker worker;

uint32
synchro_wait_event(void)
{
#if PG_VERSION_NUM >= 170000
	static uint32 event = 0;

	if (event == 0)
		event = WaitEventExtensionNew("SynchroWorker");
	return event;
#else
	return PG_WAIT_EXTENSION;
#endif
}

void
synchro_worker_signals(void)
{
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	pqsignal(SIGQUIT, SignalHandlerForCrashExit);
	pqsignal(SIGUSR1, procsignal_sigusr1_handler);
	pqsignal(SIGINT, SIG_IGN);
	pqsignal(SIGPIPE, SIG_IGN);
}

/*
 * Complains, once until something else happens, and shows it in _worker_status().  A core that fails every second must not
 * fill the log.
 */
static void
complain(int sqlstate, const char *message, const char *hint)
{
	synchro_slot_error(worker.slot, message);
	if (strncmp(worker.logged, message, sizeof(worker.logged) - 1) == 0)
		return;
	strlcpy(worker.logged, message, sizeof(worker.logged));
	ereport(WARNING,
			(errcode(sqlstate),
			 errmsg("synchro worker of database \"%s\": %s", worker.slot->database, message),
			 hint ? errhint("%s", hint) : 0));
}

/* The opposite: all is well again. */
static void
rejoice(void)
{
	if (worker.logged[0])
		ereport(LOG, (errmsg("synchro worker of database \"%s\": working again", worker.slot->database)));
	worker.logged[0] = '\0';
	synchro_slot_error(worker.slot, "");
}

/* One line from the core. */
static void
on_status(const char *line, void *arg)
{
	SynchroStatus status;

	if (!synchro_status_parse(line, &status))
	{
		worker.protocol_broken = true;
		return;
	}
	if (!status.is_error)
	{
		synchro_slot_state(worker.slot, status.word);
		if (strcmp(status.word, "streaming") == 0)
		{
			worker.has_streamed = true;
			rejoice();
		}
		else if (strcmp(status.word, "blocked") == 0)
			complain(ERRCODE_WARNING, "capture is blocked",
					 "synchro_health_detail() tells the class of the cause, docs/operations.md what helps.");
		return;
	}
	/* The server itself ended the core's sessions: whoever did that knows. */
	if (strcmp(status.word, "server_stopping") == 0 || ShutdownRequestPending)
		return;
	complain(ERRCODE_WARNING,
			 strcmp(status.sqlstate, "00000") == 0 ? psprintf("core reports %s", status.word) :
			 psprintf("core reports %s (SQLSTATE %s)", status.word, status.sqlstate),
			 synchro_status_hint(status.word));
}

/* Collects a core that has ended. */
static void
core_gone(bool expected)
{
	const char *how = synchro_core_reap(&worker.core);

	synchro_slot_core(worker.slot, 0, synchro_core_host);
	worker.not_before = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), expected ? 0 : RESTART_MS);
	explicit_bzero(worker.identity.data, worker.identity.maxlen);
	resetStringInfo(&worker.identity);
	if (!expected)
	{
		synchro_slot_state(worker.slot, "restarting");
		complain(ERRCODE_CONNECTION_FAILURE, psprintf("core %s", how), NULL);
		/* What is left of Go in here may still be at work. */
		if (worker.go_loaded)
			proc_exit(1);
	}
}

/* Stops the core, if there is one, for a reason that _worker_status() shows. */
static void
stop_core(const char *state)
{
	synchro_slot_state(worker.slot, state);
	if (!worker.core.running)
		return;
	if (!synchro_core_stop(&worker.core, STOP_MS, on_status, NULL))
	{
		ereport(LOG, (errmsg("synchro worker of database \"%s\": core did not stop in time", worker.slot->database)));
		if (worker.go_loaded)
			proc_exit(1);
	}
	synchro_slot_state(worker.slot, state);
	core_gone(true);
}

/* What a core started now would be told about who and where. */
static void
current_identity(StringInfo buf)
{
	char		login[NAMEDATALEN] = "";
	char		password[SYNCHRO_PASSWORD_LEN + 1] = "";

	if (!synchro_worker_conninfo[0])
	{
		synchro_login_name(login);
		synchro_password(password);
	}
	synchro_config_identity(buf, worker.slot->database, login, password);
	explicit_bzero(password, sizeof(password));
}

/* Starts a core with the settings of now. */
static void
start_core(void)
{
	StringInfoData frame;
	const char *failure = NULL;
	SynchroCatalogError error;

	worker.not_before = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), RESTART_MS);
	if (!synchro_worker_conninfo[0] && !synchro_catalog_prepare_login(&error))
	{
		synchro_slot_state(worker.slot, error.sqlstate == SYNCHRO_ERR_INVALID_CONFIGURATION ? "misconfigured" : "restarting");
		complain(error.sqlstate, error.message, error.hint);
		return;
	}

	resetStringInfo(&worker.identity);
	resetStringInfo(&worker.limits);
	current_identity(&worker.identity);
	synchro_config_limits(&worker.limits);
	initStringInfo(&frame);
	appendBinaryStringInfo(&frame, worker.identity.data, worker.identity.len);
	appendBinaryStringInfo(&frame, worker.limits.data, worker.limits.len);

	worker.extension = worker.seen_extension;
	synchro_slot_name(worker.slot_name);
	worker.has_streamed = false;
	worker.protocol_broken = false;
	if (!synchro_core_start(&worker.core, synchro_core_host, &failure))
		complain(ERRCODE_CONFIG_FILE_ERROR, psprintf("core %s", failure), "Reinstall synchro.");
	else
	{
		worker.go_loaded = worker.core.host == SYNCHRO_HOST_IN_PROCESS;
		synchro_slot_core(worker.slot, worker.core.pid, worker.core.host);
		synchro_slot_state(worker.slot, "starting");
		/* A core that is dead already is noticed by its status pipe. */
		(void) synchro_core_send(&worker.core, SYNCHRO_FRAME_CONFIG, frame.data, frame.len);
	}
	explicit_bzero(frame.data, frame.len);
	pfree(frame.data);
}

/* A smart shutdown tells nobody but this file, and waits for client sessions: our core has some. */
static bool
server_is_stopping(void)
{
	char		buf[1024];
	FILE	   *file = AllocateFile("postmaster.pid", "r");
	bool		stopping = false;

	if (file == NULL)
		return false;
	for (int line = 1; fgets(buf, sizeof(buf), file); line++)
		if (line == LOCK_FILE_LINE_PM_STATUS)
			stopping = strncmp(buf, "stopping", strlen("stopping")) == 0;
	FreeFile(file);
	return stopping;
}

/* Finds out what is wrong with the settings, if anything. */
static void
check_settings(void)
{
	MemoryContext before;

	MemoryContextReset(worker.problem_context);
	before = MemoryContextSwitchTo(worker.problem_context);
	if (!synchro_config_problem(&worker.problem) && !synchro_catalog_file_problem(&worker.problem))
		worker.problem.message = NULL;
	if (worker.problem.message == NULL && synchro_replication_slot[0] && synchro_workers->nslots > 1)
	{
		worker.problem.message = "synchro.replication_slot is set, but there are several databases";
		worker.problem.hint = "Remove it: slot names are unique in the server, and each database needs its own.";
	}
	MemoryContextSwitchTo(before);
	worker.settings_changed = false;
}

/* Looks at what doesn't wake us. */
static void
look_around(void)
{
	worker.last_look = GetCurrentTimestamp();
	worker.server_stopping = server_is_stopping();
	if (worker.server_stopping)
		return;
	if (worker.settings_changed)
		check_settings();
	(void) synchro_catalog_extension(&worker.seen_extension);
	if (worker.orphan_slot && !worker.core.running)
		worker.orphan_slot = !synchro_catalog_drop_slot(worker.slot_name);
}

/* Why no core should run now, as a state; NULL when one should. */
static const char *
reason_against_core(void)
{
	if (worker.server_stopping)
		return "stopping";
	if (worker.problem.message != NULL)
		return "misconfigured";
	if (RecoveryInProgress())
		return "waiting_for_recovery";
	if (!OidIsValid(worker.seen_extension))
		return "waiting_for_extension";
	if (worker.orphan_slot)
		return "restarting";
	return NULL;
}

/* Does the running core differ from the one that would be started now in more than its limits? */
static bool
core_is_outdated(void)
{
	StringInfoData now;
	bool		differs;

	initStringInfo(&now);
	current_identity(&now);
	differs = now.len != worker.identity.len || memcmp(now.data, worker.identity.data, now.len) != 0 ||
		worker.core.host != synchro_core_host || worker.extension != worker.seen_extension;
	explicit_bzero(now.data, now.len);
	pfree(now.data);
	return differs;
}

/* Tells the running core about new limits and work to look for. */
static void
tell_core(void)
{
	StringInfoData now;

	initStringInfo(&now);
	synchro_config_limits(&now);
	if ((now.len != worker.limits.len || memcmp(now.data, worker.limits.data, now.len) != 0) &&
		synchro_core_send(&worker.core, SYNCHRO_FRAME_LIMITS, now.data, now.len))
	{
		resetStringInfo(&worker.limits);
		appendBinaryStringInfo(&worker.limits, now.data, now.len);
	}
	pfree(now.data);
	if (pg_atomic_exchange_u32(&worker.slot->wake, 0) != 0)
		(void) synchro_core_send(&worker.core, SYNCHRO_FRAME_WAKE, NULL, 0);
}

/* Makes what is into what should be. */
static void
reconcile(void)
{
	const char *against;

	/* A slot outlives its extension and would keep WAL for ever. */
	if (worker.core.running && worker.has_streamed && worker.extension != worker.seen_extension)
		worker.orphan_slot = true;

	against = reason_against_core();
	if (against != NULL)
	{
		if (worker.problem.message != NULL && !worker.server_stopping)
			complain(SYNCHRO_ERR_INVALID_CONFIGURATION, worker.problem.message, worker.problem.hint);
		stop_core(against);
	}
	else if (!worker.core.running)
	{
		/* A process gets one Go runtime in its life; the next one starts clean. */
		if (worker.go_loaded)
			proc_exit(1);
		if (GetCurrentTimestamp() >= worker.not_before)
			start_core();
	}
	else if (core_is_outdated())
		stop_core("restarting");
	else
		tell_core();
}

/* Milliseconds until the loop has something to do without being woken. */
static long
next_timeout(void)
{
	TimestampTz now = GetCurrentTimestamp();
	long		timeout = TimestampDifferenceMilliseconds(now, TimestampTzPlusMilliseconds(worker.last_look, TICK_MS));

	if (!worker.core.running && worker.not_before > now)
		timeout = Min(timeout, TimestampDifferenceMilliseconds(now, worker.not_before));
	return Max(timeout, 0);
}

/* Waits, then handles what woke us. */
static void
wait_for_events(void)
{
	int			events = WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH;

	if (worker.core.running)
		events |= WL_SOCKET_READABLE;
	events = WaitLatchOrSocket(MyLatch, events, worker.core.running ? worker.core.status_fd : PGINVALID_SOCKET,
							   next_timeout(), synchro_wait_event());
	if (events & WL_LATCH_SET)
		ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
	if (ConfigReloadPending)
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
		worker.settings_changed = true;
		worker.logged[0] = '\0';	/* say again what is still wrong */
		worker.last_look = 0;
	}
	if ((events & WL_SOCKET_READABLE) &&
		(!synchro_core_read(&worker.core, on_status, NULL) || worker.protocol_broken))
		core_gone(false);
}

/* At exit.  A worker that never got into its database looks for it first next time. */
static void
at_exit(int code, Datum arg)
{
	worker.slot->missing = !worker.found_database;
	synchro_slot_detach(worker.slot);
}

/* Stays without a database until ours exists and may be connected to, then leaves to be restarted. */
static void
wait_for_database(void)
{
	synchro_slot_state(worker.slot, "waiting_for_database");
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	while (!ShutdownRequestPending && !synchro_catalog_database_exists(worker.slot->database))
	{
		worker.last_look = GetCurrentTimestamp();
		wait_for_events();
	}
	/* A process can't change its database: the next one connects. */
	worker.found_database = true;
	proc_exit(1);
}

/* Entry point of the process. */
void
synchro_worker_main(Datum arg)
{
	MemoryContext loop_context;

	worker.slot = &synchro_workers->slots[DatumGetInt32(arg)];
	synchro_worker_signals();
	BackgroundWorkerUnblockSignals();
	synchro_slot_attach(worker.slot);
	before_shmem_exit(at_exit, 0);

	if (worker.slot->missing)
		wait_for_database();
	BackgroundWorkerInitializeConnection(worker.slot->database, NULL, 0);
	worker.found_database = true;
	synchro_catalog_session();

	MemoryContextSwitchTo(TopMemoryContext);
	initStringInfo(&worker.identity);
	initStringInfo(&worker.limits);
	worker.problem_context = AllocSetContextCreate(TopMemoryContext, "synchro settings", ALLOCSET_SMALL_SIZES);
	worker.settings_changed = true;
	loop_context = AllocSetContextCreate(TopMemoryContext, "synchro worker", ALLOCSET_DEFAULT_SIZES);

	while (!ShutdownRequestPending)
	{
		MemoryContextSwitchTo(loop_context);
		MemoryContextReset(loop_context);
		if (TimestampDifferenceExceeds(worker.last_look, GetCurrentTimestamp(), TICK_MS))
			look_around();
		reconcile();
		wait_for_events();
	}
	stop_core("stopping");
	/* 0 would tell the postmaster never to start us again. */
	proc_exit(1);
}
