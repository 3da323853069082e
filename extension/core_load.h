/*
 * core_load.h - loads the Go core and starts it; the same code in both hosts
 *
 * No PostgreSQL in here: inside the server it runs on a helper thread, in the process host there is no PostgreSQL at all.
 */
#ifndef SYNCHRO_CORE_LOAD_H
#define SYNCHRO_CORE_LOAD_H

#include <dlfcn.h>
#include <stddef.h>

#include "core_abi.h"

/* Returns SYNCHRO_CORE_*; on success *wait (when asked for) is the function that waits for the core's end. */
static inline int
synchro_core_load(const char *library, int control_fd, int status_fd, SynchroCoreWaitFn *wait)
{
	void	   *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	SynchroCoreABIFn abi;
	SynchroCoreStartFn start;

	if (handle == NULL)
		return SYNCHRO_CORE_NO_LIBRARY;
	abi = (SynchroCoreABIFn) dlsym(handle, "SynchroCoreABI");
	start = (SynchroCoreStartFn) dlsym(handle, "SynchroCoreStart");
	if (wait != NULL)
		*wait = (SynchroCoreWaitFn) dlsym(handle, "SynchroCoreWait");
	if (abi == NULL || start == NULL || (wait != NULL && *wait == NULL))
		return SYNCHRO_CORE_NO_LIBRARY;
	if (abi() != SYNCHRO_CORE_ABI)
		return SYNCHRO_CORE_WRONG_ABI;
	return start(control_fd, status_fd);
}

#endif							/* SYNCHRO_CORE_LOAD_H */
