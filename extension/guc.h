/*
 * guc.h - the settings of synchro (docs/configuration.md)
 *
 * Limits accept any number here: a value that makes no sense must reach the worker, which refuses to run with it, instead of
 * being replaced by a default.  Code in backends that reads a limit therefore refuses values <= 0 itself.
 */
#ifndef SYNCHRO_GUC_H
#define SYNCHRO_GUC_H

#include "postgres.h"

typedef enum SynchroCoreHost
{
	SYNCHRO_HOST_PROCESS,		/* the Go core is a child process of the worker */
	SYNCHRO_HOST_IN_PROCESS		/* the Go core runs inside the worker */
} SynchroCoreHost;

/* Who is served, and how the core gets in. */
extern char *synchro_database;
extern char *synchro_worker_login;
extern char *synchro_worker_conninfo;
extern char *synchro_replication_slot;
extern char *synchro_publication_name;
extern int	synchro_core_host;
extern char *synchro_core_library;

/* Limits, in seconds, bytes, rows or MB. */
extern int	synchro_max_worker_heartbeat_age;
extern double synchro_max_wal_lag_bytes;
extern int	synchro_max_wal_lag_seconds;
extern int	synchro_stale_client_after;
extern char *synchro_compact_schedule;
extern int	synchro_backfill_batch_size;
extern int	synchro_max_row_bytes;
extern int	synchro_batch_max_rows;
extern int	synchro_batch_max_bytes;
extern int	synchro_worker_memory_limit;
extern int	synchro_digest_memory;

#define SYNCHRO_DIGEST_MEMORY_MAX 65536

/* Guards and what policies may read. */
extern bool synchro_ddl_guard;
extern bool synchro_verify_digests;
extern char *synchro_user_id;

/* What is wrong with the settings; false: nothing.  The strings are palloc'd or constant. */
typedef struct SynchroConfigProblem
{
	const char *message;
	const char *hint;
} SynchroConfigProblem;

extern void synchro_guc_init(void);
extern bool synchro_config_problem(SynchroConfigProblem *problem);
extern int	synchro_compact_period(void);	/* seconds, 0 = off, -1 = invalid */

#endif							/* SYNCHRO_GUC_H */
