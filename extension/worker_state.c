/*
 * worker_state.c - shared memory of the workers, and the SQL functions that look at it
 */
#include "postgres.h"

#include "commands/dbcommands.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "guc.h"
#include "worker_state.h"

SynchroWorkerShared *synchro_workers;

static char *const *slot_databases;
static int	slot_count;
static shmem_request_hook_type prev_shmem_request_hook;
static shmem_startup_hook_type prev_shmem_startup_hook;

static Size
shared_size(void)
{
	return add_size(offsetof(SynchroWorkerShared, slots), mul_size(slot_count, sizeof(SynchroWorkerSlot)));
}

static void
request_shared_memory(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();
	RequestAddinShmemSpace(shared_size());
	RequestNamedLWLockTranche("synchro_workers", 1);
}

static void
start_shared_memory(void)
{
	bool		found;

	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	synchro_workers = ShmemInitStruct("synchro workers", shared_size(), &found);
	if (!found)
	{
		memset(synchro_workers, 0, shared_size());
		synchro_workers->lock = &GetNamedLWLockTranche("synchro_workers")->lock;
		synchro_workers->nslots = slot_count;
		for (int i = 0; i < slot_count; i++)
		{
			SynchroWorkerSlot *slot = &synchro_workers->slots[i];

			strlcpy(slot->database, slot_databases[i], NAMEDATALEN);
			strlcpy(slot->state, "starting", SYNCHRO_STATE_LEN);
			slot->host = synchro_core_host;
			pg_atomic_init_u32(&slot->wake, 0);
		}
	}
	LWLockRelease(AddinShmemInitLock);
}

void
synchro_worker_state_init(char *const *databases, int ndatabases)
{
	slot_databases = databases;
	slot_count = ndatabases;
	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = request_shared_memory;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = start_shared_memory;
}

/* Announces this process as the slot's worker. */
void
synchro_slot_attach(SynchroWorkerSlot *slot)
{
	LWLockAcquire(synchro_workers->lock, LW_EXCLUSIVE);
	slot->pid = MyProcPid;
	slot->latch = &MyProc->procLatch;
	strlcpy(slot->state, "starting", SYNCHRO_STATE_LEN);
	LWLockRelease(synchro_workers->lock);
}

void
synchro_slot_detach(SynchroWorkerSlot *slot)
{
	LWLockAcquire(synchro_workers->lock, LW_EXCLUSIVE);
	slot->pid = 0;
	slot->core_pid = 0;
	slot->latch = NULL;
	slot->started_at = 0;
	strlcpy(slot->state, "stopped", SYNCHRO_STATE_LEN);
	LWLockRelease(synchro_workers->lock);
}

void
synchro_slot_state(SynchroWorkerSlot *slot, const char *state)
{
	LWLockAcquire(synchro_workers->lock, LW_EXCLUSIVE);
	strlcpy(slot->state, state, SYNCHRO_STATE_LEN);
	LWLockRelease(synchro_workers->lock);
}

/* Sets or, with an empty string, clears the last error. */
void
synchro_slot_error(SynchroWorkerSlot *slot, const char *error)
{
	LWLockAcquire(synchro_workers->lock, LW_EXCLUSIVE);
	strlcpy(slot->last_error, error, SYNCHRO_ERROR_LEN);
	LWLockRelease(synchro_workers->lock);
}

/* Notes the start of a core, or with 0 its end. */
void
synchro_slot_core(SynchroWorkerSlot *slot, pid_t core_pid, int host)
{
	LWLockAcquire(synchro_workers->lock, LW_EXCLUSIVE);
	slot->core_pid = core_pid;
	slot->host = host;
	slot->started_at = core_pid ? GetCurrentTimestamp() : 0;
	if (core_pid)
		slot->core_starts++;
	LWLockRelease(synchro_workers->lock);
}

/* The slot of the current database, or NULL when it is not synchronized. */
static SynchroWorkerSlot *
current_slot(void)
{
	char	   *database = get_database_name(MyDatabaseId);

	for (int i = 0; database && i < synchro_workers->nslots; i++)
		if (strcmp(synchro_workers->slots[i].database, database) == 0)
			return &synchro_workers->slots[i];
	return NULL;
}

PG_FUNCTION_INFO_V1(synchro_worker_status);

/* _worker_status(): the worker of this database; no row when it has none. */
Datum
synchro_worker_status(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	SynchroWorkerSlot *slot = current_slot();
	SynchroWorkerSlot copy;
	Datum		values[7];
	bool		nulls[7] = {0};

	InitMaterializedSRF(fcinfo, 0);
	if (slot == NULL)
		return (Datum) 0;

	LWLockAcquire(synchro_workers->lock, LW_SHARED);
	copy = *slot;
	LWLockRelease(synchro_workers->lock);

	values[0] = Int32GetDatum(copy.pid);
	nulls[0] = copy.pid == 0;
	values[1] = Int32GetDatum(copy.core_pid);
	nulls[1] = copy.core_pid == 0;
	values[2] = CStringGetTextDatum(copy.host == SYNCHRO_HOST_IN_PROCESS ? "in_process" : "process");
	values[3] = CStringGetTextDatum(copy.state);
	values[4] = TimestampTzGetDatum(copy.started_at);
	nulls[4] = copy.started_at == 0;
	values[5] = CStringGetTextDatum(copy.last_error);
	nulls[5] = copy.last_error[0] == '\0';
	values[6] = Int64GetDatum(copy.core_starts > 0 ? copy.core_starts - 1 : 0);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	return (Datum) 0;
}

PG_FUNCTION_INFO_V1(synchro_worker_wake);

/* _worker_wake(): makes the core of this database look for work; false when no worker runs. */
Datum
synchro_worker_wake(PG_FUNCTION_ARGS)
{
	SynchroWorkerSlot *slot = current_slot();
	bool		awake = false;

	if (slot != NULL)
	{
		pg_atomic_write_u32(&slot->wake, 1);
		LWLockAcquire(synchro_workers->lock, LW_SHARED);
		if (slot->latch != NULL)
		{
			SetLatch(slot->latch);
			awake = true;
		}
		LWLockRelease(synchro_workers->lock);
	}
	PG_RETURN_BOOL(awake);
}
