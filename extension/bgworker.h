/*
 * bgworker.h - one background worker per synchronized database
 */
#ifndef SYNCHRO_BGWORKER_H
#define SYNCHRO_BGWORKER_H

#include "postgres.h"

/* Registers the workers; called once, in the postmaster. */
extern void synchro_bgworker_init(void);

/* Installs the worker's signal handlers, at start and after Go has touched them. */
extern void synchro_worker_signals(void);

/* What pg_stat_activity shows while the worker waits. */
extern uint32 synchro_wait_event(void);

#endif							/* SYNCHRO_BGWORKER_H */
