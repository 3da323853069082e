/*
 * lookup.h
 *		Rows of our own tables by index, without a plan: what every request reads.
 */
#ifndef SYNCHRO_LOOKUP_H
#define SYNCHRO_LOOKUP_H

#include "postgres.h"

#include "access/genam.h"
#include "access/relscan.h"
#include "access/skey.h"
#include "executor/tuptable.h"
#include "utils/rel.h"

#define SYN_LOOKUP_KEYS 4

typedef struct SynLookup
{
	Relation	table;
	Relation	index;
	IndexScanDesc scan;
	ScanKeyData keys[SYN_LOOKUP_KEYS];
	int			nkeys;
	TupleTableSlot *slot;		/* the current row */
} SynLookup;

/* Opens a table of schema synchro and one of its indexes; or a projection and its primary key, false when there is none. */
extern void syn_lookup_open(SynLookup *lookup, const char *table, const char *index);
extern bool syn_lookup_open_projection(SynLookup *lookup, int rel_no);

/* The next key column of the rows that are looked for must equal this value: an int4, an int8 or a text. */
extern void syn_lookup_int4(SynLookup *lookup, int32 value);
extern void syn_lookup_int8(SynLookup *lookup, int64 value);
extern void syn_lookup_text(SynLookup *lookup, const char *value, int len);

/* The next key column compares with the value, of any type, by this operator of its index. */
extern void syn_lookup_key(SynLookup *lookup, StrategyNumber strategy, RegProcedure compare, Datum value);

/* Begins with the keys given since the last time; rows then come in the order of the index. */
extern void syn_lookup_begin(SynLookup *lookup);
extern bool syn_lookup_next(SynLookup *lookup);

/* A column of the current row. */
extern int	syn_lookup_column(const SynLookup *lookup, const char *name);
extern Datum syn_lookup_get(const SynLookup *lookup, const char *name, bool *isnull);

/* The same, which cannot be null. */
extern Datum syn_lookup_value(const SynLookup *lookup, const char *name);

extern void syn_lookup_close(SynLookup *lookup);

#endif							/* SYNCHRO_LOOKUP_H */
