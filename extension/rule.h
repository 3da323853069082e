/*
 * rule.h
 *		How rows are evaluated: the membership rule of a relation, or a dependency's impact on one; cached for the session.
 */
#ifndef SYNCHRO_RULE_H
#define SYNCHRO_RULE_H

#include "postgres.h"

#include "executor/spi.h"

typedef struct RuleKey
{
	int64		generation;
	int32		target;			/* rel_no of the relation whose rows are meant */
	int32		source;			/* rel_no of the dependency; 0: the membership rule */
} RuleKey;

typedef struct Rule
{
	RuleKey		key;
	Oid			function;
	Oid			twin;			/* InvalidOid: none, evaluate by calls */
	Oid			owner;
	char		hash[65];
	char		twin_hash[65];	/* empty: none */
	bool		replaced;		/* by a definition registered for a later generation: the twin stands in */
	uint64		verified_at;	/* epoch; 0: not yet */
	/* of the target's key */
	Oid			key_type;
	int32		key_typmod;
	char		table_id[37];
	char		pk_type[8];
	/* bound of results */
	int			limit;
	bool		single_scope;
	/* plans */
	bool		unordered;		/* its set form returns rows out of order */
	SPIPlanPtr	set_plan;
	SPIPlanPtr	sorted_plan;
	SPIPlanPtr	call_plan;
} Rule;

/* Rows of the target for which a source row matters are named by impact rules. */
static inline bool
rule_is_impact(const Rule *rule)
{
	return rule->key.source != 0;
}

/* The configuration, with its function verified. Raises SY201 when it is not what was registered. */
extern Rule *rule_get(int64 generation, int32 target, int32 source);

#endif							/* SYNCHRO_RULE_H */
