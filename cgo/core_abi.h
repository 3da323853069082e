/*
 * core_abi.h - the line between C and the Go core
 *
 * The core is the library synchro_core.so.  A host (the background worker itself, or its child synchro_core_host) loads it and
 * calls the three functions below; everything else travels through two pipes.  No pointer crosses, Go never calls PostgreSQL.
 *
 * Control pipe, host to core: frames  kind (1 octet), length (4 octets, big-endian), payload.
 *	 C	configuration, the first frame, once:  name NUL value NUL ...  conninfo may repeat: candidates in order
 *	 L	limits changed, same form
 *	 W	wake: look for work now
 *	 T	terminate
 * End of file means terminate, too.
 *
 * Status pipe, core to host: lines of at most SYNCHRO_STATUS_LINE octets with the newline, each written at once.
 *	 state WORD
 *	 error WORD SQLSTATE	(SQLSTATE 00000 when there is none)
 * A word consists of lower case letters and '_'.  There is no free text, so no data can leak into a log.  End of file means
 * that the core has ended.
 */
#ifndef SYNCHRO_CORE_ABI_H
#define SYNCHRO_CORE_ABI_H

#define SYNCHRO_CORE_ABI		1	/* changes with anything above */

#define SYNCHRO_FRAME_CONFIG	'C'
#define SYNCHRO_FRAME_LIMITS	'L'
#define SYNCHRO_FRAME_WAKE		'W'
#define SYNCHRO_FRAME_STOP		'T'

#define SYNCHRO_STATUS_WORD		31
#define SYNCHRO_STATUS_LINE		64

/* Status codes of loading and starting a core. */
#define SYNCHRO_CORE_OK			0
#define SYNCHRO_CORE_NO_LIBRARY	1	/* dlopen or dlsym failed */
#define SYNCHRO_CORE_WRONG_ABI	2
#define SYNCHRO_CORE_RUNNING	3	/* this process has a core already */

/* Descriptors of a process host: these and stdin, stdout, stderr are all it has. */
#define SYNCHRO_CONTROL_FD		3
#define SYNCHRO_STATUS_FD		4

/* What the library exports. */
typedef int (*SynchroCoreABIFn) (void);
typedef int (*SynchroCoreStartFn) (int control_fd, int status_fd);	/* returns at once; the core owns both */
typedef void (*SynchroCoreWaitFn) (void);	/* returns when the core has ended */

#endif							/* SYNCHRO_CORE_ABI_H */
