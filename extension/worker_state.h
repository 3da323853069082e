/*
 * worker_state.h - what workers and backends share: status, wake-up, and the password of the worker's login
 */
#ifndef SYNCHRO_WORKER_STATE_H
#define SYNCHRO_WORKER_STATE_H

#include "postgres.h"

#include "datatype/timestamp.h"
#include "port/atomics.h"
#include "storage/latch.h"
#include "storage/lwlock.h"

#define SYNCHRO_STATE_LEN		32
#define SYNCHRO_ERROR_LEN		160
#define SYNCHRO_PASSWORD_LEN	64	/* hexadecimal digits */

/* One worker.  Written by it, read by everybody, under the lock. */
typedef struct SynchroWorkerSlot
{
	char		database[NAMEDATALEN];
	bool		missing;		/* connecting failed: look in pg_database before the next attempt */
	pid_t		pid;			/* 0: not running */
	pid_t		core_pid;		/* 0: no core; the worker's own in the in_process host */
	int			host;			/* SynchroCoreHost of the core, or of the next one */
	Latch	   *latch;
	char		state[SYNCHRO_STATE_LEN];
	TimestampTz started_at;		/* of the core; 0: none */
	char		last_error[SYNCHRO_ERROR_LEN];
	uint64		core_starts;	/* since the server started */
	pg_atomic_uint32 wake;		/* a backend wants the core to look for work */
} SynchroWorkerSlot;

typedef struct SynchroWorkerShared
{
	LWLock	   *lock;
	bool		has_password;
	char		password[SYNCHRO_PASSWORD_LEN + 1];
	int			nslots;
	SynchroWorkerSlot slots[FLEXIBLE_ARRAY_MEMBER];
} SynchroWorkerShared;

extern SynchroWorkerShared *synchro_workers;

/* Called once in the postmaster, with the names of the databases. */
extern void synchro_worker_state_init(char *const *databases, int ndatabases);

/* Setters of a worker's own slot. */
extern void synchro_slot_attach(SynchroWorkerSlot *slot);
extern void synchro_slot_detach(SynchroWorkerSlot *slot);
extern void synchro_slot_state(SynchroWorkerSlot *slot, const char *state);
extern void synchro_slot_error(SynchroWorkerSlot *slot, const char *error);
extern void synchro_slot_core(SynchroWorkerSlot *slot, pid_t core_pid, int host);

#endif							/* SYNCHRO_WORKER_STATE_H */
