/*
 * core_status.h - what the Go core reports, and what an operator can do about it
 */
#ifndef SYNCHRO_CORE_STATUS_H
#define SYNCHRO_CORE_STATUS_H

#include "postgres.h"

#include "core_abi.h"

typedef struct SynchroStatus
{
	bool		is_error;		/* else a state */
	char		word[SYNCHRO_STATUS_WORD + 1];	/* state or class */
	char		sqlstate[6];	/* of an error; 00000 when it did not come from the server */
} SynchroStatus;

/* Reads a status line; false when it is none. */
extern bool synchro_status_parse(const char *line, SynchroStatus *status);

/* What an operator can do about a class of errors, or NULL. */
extern const char *synchro_status_hint(const char *error_class);

#endif							/* SYNCHRO_CORE_STATUS_H */
