/*
 * membership.h
 *		How the rows of a relation are evaluated, cached for the session.
 */
#ifndef SYNCHRO_MEMBERSHIP_H
#define SYNCHRO_MEMBERSHIP_H

#include "postgres.h"

#include "executor/spi.h"

typedef struct MembershipKey
{
	int64		generation;
	int64		rel_no;
} MembershipKey;

typedef struct Membership
{
	MembershipKey key;
	Oid			function;
	Oid			twin;			/* InvalidOid: none, evaluate by calls */
	Oid			owner;
	Oid			key_type;
	char		hash[65];
	bool		single_scope;
	int			max_fanout;
	uint64		verified_at;	/* epoch; 0: not yet */
	bool		unordered;		/* its set form returns rows out of order */
	SPIPlanPtr	set_plan;
	SPIPlanPtr	sorted_plan;
	SPIPlanPtr	call_plan;
} Membership;

/* The configuration, with its functions verified. Raises SY201 when they are not what was registered. */
extern Membership *membership_get(int rel_no, int64 generation);

#endif							/* SYNCHRO_MEMBERSHIP_H */
