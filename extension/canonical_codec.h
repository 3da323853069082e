/*
 * canonical_codec.h
 *		Inside of a codec: shared by the canonical_*.c files that make and use it.
 */
#ifndef SYNCHRO_CANONICAL_CODEC_H
#define SYNCHRO_CANONICAL_CODEC_H

#include "canonical.h"

typedef enum SynMethod
{
	SYN_M_INT2,
	SYN_M_INT4,
	SYN_M_INT8,
	SYN_M_BOOL,
	SYN_M_NUMERIC,
	SYN_M_FLOAT4,
	SYN_M_FLOAT8,
	SYN_M_TIMESTAMP,			/* with or without time zone: both count from the same UTC midnight */
	SYN_M_DATE,
	SYN_M_TIME,
	SYN_M_JSON,
	SYN_M_JSONB,
	SYN_M_BYTEA,
	SYN_M_UUID,
	SYN_M_CHAR,					/* "char" */
	SYN_M_TEXT,					/* any varlena that is its own text */
	SYN_M_ARRAY,
	SYN_M_OUTPUT				/* the type's output function under pinned settings */
} SynMethod;

typedef struct SynCodecKey
{
	Oid			typid;
	SynType		type;
	bool		as_text;
} SynCodecKey;

struct SynCodec
{
	SynCodecKey key;			/* must be first: hash key */
	SynMethod	method;
	bool		ascii;			/* SYN_M_OUTPUT: output is ASCII without control characters */
	FmgrInfo	output;			/* SYN_M_OUTPUT */
	const SynCodec *element;	/* SYN_M_ARRAY */
	Oid			elemtype;
	int16		elemlen;
	bool		elembyval;
	char		elemalign;
};

/* Ranges of values that have a portable form: years 1 to 9999. */
#define SYN_MIN_DATE (-730119)
#define SYN_MAX_DATE 2921939
#define SYN_MIN_TIMESTAMP (SYN_MIN_DATE * USECS_PER_DAY)
#define SYN_MAX_TIMESTAMP ((SYN_MAX_DATE + 1) * USECS_PER_DAY - 1)

/* Output of any type, the same under every setting. */
extern char *syn_output(FmgrInfo *output, Datum datum);

/* Canonical JSON text of an array; false: it has none. */
extern bool syn_array_json(const SynCodec *codec, Datum datum, StringInfo out);

/* PostgreSQL array literal of a JSON array; false: refused. */
extern bool syn_array_literal(Oid array_type, const JcsNode *node, StringInfo out);

#endif							/* SYNCHRO_CANONICAL_CODEC_H */
