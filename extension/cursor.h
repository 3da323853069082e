/*
 * cursor.h
 *		Incremental cursors.
 *
 * A position is (lsn, event, effect). Before everything, "generation_start", is event -1; after all effects of a transaction,
 * "transaction_end", is the highest event and effect. So positions compare as rows.
 */
#ifndef SYNCHRO_CURSOR_H
#define SYNCHRO_CURSOR_H

#include "postgres.h"

#include "access/xlogdefs.h"

#define SYN_START_EVENT INT64CONST(-1)
#define SYN_END_EVENT PG_INT64_MAX
#define SYN_END_EFFECT PG_INT32_MAX

typedef struct SynText
{
	const char *data;
	int			len;
} SynText;

typedef struct SynCursor
{
	XLogRecPtr	lsn;
	int64		event;
	int32		effect;
	int64		stream;			/* generations */
	int64		client_generation;
	int64		membership;
	int64		retention;
	int64		issued;			/* microseconds since 1970 */
	SynText		user;
	SynText		client;
	SynText		scope;
	SynText		schema_hash;
} SynCursor;

/* Signs with the active key. */
extern text *syn_cursor_seal(const SynCursor *c);

/* Opens a token; false: not one of ours. The texts live in the current memory context. */
extern bool syn_cursor_open(const text *token, SynCursor *c);

#endif							/* SYNCHRO_CURSOR_H */
