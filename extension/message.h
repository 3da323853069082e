/*
 * message.h
 *		Authenticated messages in the WAL (docs/architecture.md section 2).
 */
#ifndef SYNCHRO_MESSAGE_H
#define SYNCHRO_MESSAGE_H

#include "postgres.h"

#include "access/xlogdefs.h"
#include "lib/stringinfo.h"

#define MESSAGE_FENCE 'F'
#define MESSAGE_ACTIVATION 'A'
#define MESSAGE_SWITCH 'S'
#define MESSAGE_PUSH 'P'
#define MESSAGE_MARKER 'M'
#define MESSAGE_DRIFT 'D'
#define MESSAGE_COMPACTION 'C'

#define MESSAGE_HEADER 17		/* type and MAC */

/* Starts a message: room for the header, filled in by message_emit. */
extern void message_begin(StringInfo message);

/* Puts a message into the WAL; returns the end of its record. */
extern XLogRecPtr message_emit(char type, StringInfo message, bool transactional);

#endif							/* SYNCHRO_MESSAGE_H */
