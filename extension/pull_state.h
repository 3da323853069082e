/*
 * pull_state.h
 *		What a pull in good order is answered from, read without statements and plans.
 */
#ifndef SYNCHRO_PULL_STATE_H
#define SYNCHRO_PULL_STATE_H

#include "postgres.h"

#include "access/xlogdefs.h"

#include "cursor.h"

/* A scope of the client and what is known of it. */
typedef struct SynPullScope
{
	SynText		id;
	XLogRecPtr	ack_lsn;		/* acknowledged position */
	int64		ack_event;
	int32		ack_effect;
	int64		number;			/* 0: no effect so far */
	int64		membership;
	int64		retention;
	XLogRecPtr	floor_lsn;
	int64		floor_event;
	int32		floor_effect;
	XLogRecPtr	high;
	const char *digest;			/* 64 hexadecimal digits; NULL: not in the cache */
	XLogRecPtr	lsn;			/* position that the client presents */
	int64		event;
	int32		effect;
	bool		acknowledges;	/* it is to be recorded */
} SynPullScope;

typedef struct SynPull
{
	SynText		user;
	SynText		client_id;
	int64		client_no;
	int64		client_generation;
	int64		set_version;
	bool		seen;			/* its last acknowledgement is recent */
	int64		stream;
	int64		schema_version;
	SynText		schema_hash;
	XLogRecPtr	boundary;
	SynPullScope *scopes;			/* assigned, in the order of their ids' octets */
	int			nscopes;
	int64		limit;			/* of the page */
	bool		news;			/* some scope has effects after its position */
	bool		acknowledges;	/* some position is to be recorded */
} SynPull;

/* A text of a row that is about to go. */
extern SynText syn_text_value(Datum value);
extern bool syn_same_text(SynText a, SynText b);

/* By length-independent order of octets; the argument begins with a SynText. */
extern int	syn_compare_texts(const void *x, const void *y);
extern int	syn_compare_positions(XLogRecPtr lsn, int64 event, int32 effect, XLogRecPtr lsn2, int64 event2, int32 effect2);

/* The client, if it is this user's, in order, and nothing about it has to be written. */
extern bool syn_pull_client(SynPull *pull);

/* The boundary, if this server's capture is in order. */
extern bool syn_pull_boundary(SynPull *pull);

/* The scopes that are recorded as assigned, and what is materialized of them. */
extern void syn_pull_scopes(SynPull *pull);

/* Are these the scopes that the user has now? */
extern bool syn_pull_assignment(const SynPull *pull, Datum user);

#endif							/* SYNCHRO_PULL_STATE_H */
