/*
 * core.h - starting, feeding, watching and stopping the Go core from its background worker
 */
#ifndef SYNCHRO_CORE_H
#define SYNCHRO_CORE_H

#include "postgres.h"

#include "core_abi.h"

typedef struct SynchroCore
{
	bool		running;
	int			host;			/* SynchroCoreHost it was started in */
	pid_t		pid;			/* of the process it runs in */
	int			control_fd;		/* we write */
	int			status_fd;		/* we read, non-blocking */
	char		line[SYNCHRO_STATUS_LINE];	/* status line not yet complete */
	int			line_length;
} SynchroCore;

/* One complete status line, without the newline. */
typedef void (*SynchroStatusFn) (const char *line, void *arg);

/* Starts a core; false: *failure says why, in a few constant words. */
extern bool synchro_core_start(SynchroCore *core, int host, const char **failure);

/* Sends a frame; false when the core does not take it. */
extern bool synchro_core_send(SynchroCore *core, char kind, const char *payload, int length);

/* Hands over the status lines there are; false at end of file or when the core breaks the protocol. */
extern bool synchro_core_read(SynchroCore *core, SynchroStatusFn fn, void *arg);

/* Tells the core to stop and gives it some time; false when it had to be abandoned or killed. */
extern bool synchro_core_stop(SynchroCore *core, int timeout_ms, SynchroStatusFn fn, void *arg);

/* After the end of status: collects the process.  Returns a description, in static memory. */
extern const char *synchro_core_reap(SynchroCore *core);

#endif							/* SYNCHRO_CORE_H */
