/*
 * pull_state.h
 *		What a pull in good order is answered from, read without statements and plans.
 */
#ifndef SYNCHRO_PULL_STATE_H
#define SYNCHRO_PULL_STATE_H

#include "postgres.h"

#include "access/xlogdefs.h"

#include "cursor.h"

#define SYN_PULL_LIMIT 1000		/* largest page that a request may ask for */

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
	SynPullScope *scopes;		/* assigned, in the order of their ids' octets */
	int			nscopes;
	int64		limit;			/* of the page */
	bool		assigns;		/* there is an assignment function */
	bool		news;			/* some scope has effects after its position */
	bool		acknowledges;	/* some position is to be recorded */
} SynPull;

/* A copy. */
extern SynText syn_text_value(Datum value);
extern bool syn_same_text(SynText a, SynText b);

/* By their octets; what is compared begins with a SynText. */
extern int	syn_compare_texts(const void *x, const void *y);
extern int	syn_compare_positions(XLogRecPtr lsn, int64 event, int32 effect, XLogRecPtr lsn2, int64 event2, int32 effect2);

/* The client, if it is this user's, in order, and nothing about it has to be written. */
extern bool syn_pull_client(SynPull *pull);

/* The boundary, if this server's capture is in order. */
extern bool syn_pull_boundary(SynPull *pull);

/* The scopes that are recorded as assigned, and what is materialized of them. */
extern void syn_pull_scopes(SynPull *pull);

/* Are these the scopes that the user has now? Raises when the assignment function does. */
extern bool syn_pull_assignment(const SynPull *pull);

/* --- answers (pull_quick.c) --- */

/* Reads what the answer is made of; false: something has to be judged or refused. Raises no wire error. */
extern bool syn_pull_in_order(SynPull *pull, text *user, text *body);

/* Does the answer take nothing but what was read? Then it is not written to anything, and no wire error can come of it. */
extern bool syn_pull_is_quiet(const SynPull *pull);

/* The answer, and the numbers of the scopes to wait for, or 0; false: the scopes have to be assigned anew. */
extern bool syn_pull_answer(SynPull *pull, text **body, Datum *waits);

#endif							/* SYNCHRO_PULL_STATE_H */
