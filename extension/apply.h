/*
 * apply.h
 *		For the functions through which the worker writes, and reading the octets in which the worker sends rows and entries. All integers big-endian.
 */
#ifndef SYNCHRO_APPLY_H
#define SYNCHRO_APPLY_H

#include "postgres.h"

#include "fmgr.h"
#include "port/pg_bswap.h"
#include "storage/itemptr.h"
#include "utils/array.h"
#include "utils/rel.h"

#include "bulk.h"
#include "canonical.h"
#include "errcodes.h"

typedef struct Octets
{
	const char *at;
	const char *end;
} Octets;

/* Raises when there are fewer. What is returned points into the parameter. */
static inline const char *
octets_take(Octets *in, size_t n)
{
	const char *from = in->at;

	if ((size_t) (in->end - in->at) < n)
		ereport(ERROR, (errcode(SYNCHRO_ERR_INVALID_PARAMETER), errmsg("malformed rows")));
	in->at += n;
	return from;
}

static inline uint8
octets_u8(Octets *in)
{
	return *(const uint8 *) octets_take(in, 1);
}

static inline uint16
octets_u16(Octets *in)
{
	uint16		n;

	memcpy(&n, octets_take(in, sizeof(n)), sizeof(n));
	return pg_ntoh16(n);
}

static inline uint32
octets_u32(Octets *in)
{
	uint32		n;

	memcpy(&n, octets_take(in, sizeof(n)), sizeof(n));
	return pg_ntoh32(n);
}

static inline uint64
octets_u64(Octets *in)
{
	uint64		n;

	memcpy(&n, octets_take(in, sizeof(n)), sizeof(n));
	return pg_ntoh64(n);
}

static inline void
octets_tid(Octets *in, ItemPointer tid)
{
	uint32		block = octets_u32(in);

	ItemPointerSet(tid, block, octets_u16(in));
}

/* Bits of what is told of a row. */
#define TOLD_SOFT 1
#define TOLD_NEW 2				/* it has a placeholder for its scopes */
#define TOLD_ABSENT 4			/* it is not there: nothing follows */

typedef struct Teller
{
	Bulk	   *bulk;
	MemoryContext context;		/* of the call */
	int			rel_no;
	int64		schema_version;
	int			key;			/* all in the projection */
	int			deleted;		/* -1: no such column */
	int			version;
	int			scopes;
	SynRowReader *reader;
	StringInfoData scratch;
	StringInfoData out;
} Teller;

extern void tell_begin(Teller *t, FunctionCallInfo fcinfo);
extern int	tell(Teller *t, TupleTableSlot *slot, const char *version, uint8 bits);
extern void tell_tid(Teller *t, int at, ItemPointer tid);
extern bytea *tell_end(Teller *t);

extern Oid	apply_projection(int rel_no);
extern int	apply_column(Relation rel, const char *name);	/* counted from 0 */
extern int	apply_captured_column(Relation rel, int attnum);
extern ArrayType *apply_int8_array(int n);	/* of zeros */

#endif							/* SYNCHRO_APPLY_H */
