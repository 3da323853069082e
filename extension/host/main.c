/*
 * main.c - synchro_core_host: the process that the Go core runs in
 *
 * Started by the background worker with the library's path; configuration comes through the control pipe.  It dies with the
 * worker (PR_SET_PDEATHSIG, set before exec) and ends with status 64 + SYNCHRO_CORE_* when the core could not be started.
 */
#include <signal.h>
#include <stdio.h>

#include "core_load.h"

#define EXIT_CORE 64

int
main(int argc, char **argv)
{
	SynchroCoreWaitFn wait;
	int			rc;

	if (argc != 2)
	{
		fputs("synchro_core_host is started by the synchro worker\n", stderr);
		return EXIT_CORE;
	}
	/* a broken connection is an error to handle, not a reason to die */
	signal(SIGPIPE, SIG_IGN);

	rc = synchro_core_load(argv[1], SYNCHRO_CONTROL_FD, SYNCHRO_STATUS_FD, &wait);
	if (rc != SYNCHRO_CORE_OK)
		return EXIT_CORE + rc;
	wait();
	return 0;
}
