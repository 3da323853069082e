/*
 * jcs.h
 *		Strict JSON (I-JSON) and RFC 8785 canonical text.
 *
 * One parser serves everything that reads JSON in this extension: requests, wire values, json and jsonb columns, manifests.
 * It never raises on bad input; the caller decides what a refusal means.
 */
#ifndef SYNCHRO_JCS_H
#define SYNCHRO_JCS_H

#include "postgres.h"

#include "lib/stringinfo.h"

/* Arrays and objects inside one another; deeper text is refused. Clients read deeper, so they read all that is written here. */
#define JCS_MAX_DEPTH 1000

/* 2^53 - 1: beyond it integers are not exact in binary64. */
#define JCS_MAX_SAFE 9007199254740991.0

/* Refuse numbers beyond +-(2^53 - 1): values of json columns. */
#define JCS_SAFE_NUMBERS 1

typedef enum JcsKind
{
	JCS_NULL,
	JCS_FALSE,
	JCS_TRUE,
	JCS_NUMBER,
	JCS_STRING,
	JCS_ARRAY,
	JCS_OBJECT
} JcsKind;

typedef struct JcsNode JcsNode;

typedef struct JcsMember
{
	const char *name;			/* decoded; not terminated */
	int			namelen;
	JcsNode    *value;
} JcsMember;

struct JcsNode
{
	JcsKind		kind;
	int			len;			/* octets of a string; number of items or members */
	const char *raw;			/* the token as it came */
	int			rawlen;
	union
	{
		double		num;
		const char *str;		/* decoded; not terminated */
		JcsNode   **items;
		JcsMember  *members;	/* ordered by UTF-16 code units, as RFC 8785 writes them */
	}			u;
};

typedef enum JcsError
{
	JCS_OK,
	JCS_BAD_SYNTAX,
	JCS_BAD_STRING,				/* U+0000, lone surrogate or noncharacter */
	JCS_BAD_NUMBER,				/* beyond binary64, or beyond the safe integers */
	JCS_DUPLICATE,				/* a member name occurs twice */
	JCS_TOO_DEEP
} JcsError;

/*
 * Parses text[0..len), which must be followed by a NUL and be valid in the server encoding (UTF-8). The nodes point into the
 * text and live in the current memory context. NULL: refused, *error says why.
 */
extern JcsNode *jcs_parse(const char *text, int len, int flags, JcsError *error);

/* A short reason for messages; never contains data. */
extern const char *jcs_error_text(JcsError error);

/* The member of that name, or NULL. */
extern JcsNode *jcs_member(const JcsNode *object, const char *name);

/*
 * Reads an exact object: names[0..required) must be there, names[required..total) may, others may not. out[i] is NULL where an
 * optional member is absent.
 */
extern bool jcs_shape(const JcsNode *object, const char *const *names, int required, int total, JcsNode **out);

/* True if a string node equals the given text. */
extern bool jcs_string_is(const JcsNode *node, const char *text);

/* Copy of a string node as C string. */
extern char *jcs_string_dup(const JcsNode *node);

/* The value of a number token in plain integer form within +-(2^53 - 1); false for every other node. */
extern bool jcs_integer(const JcsNode *node, int64 *value);

/* Canonical text. */
extern void jcs_append(StringInfo out, const JcsNode *node);
extern void jcs_append_string(StringInfo out, const char *str, int len);
extern void jcs_append_number(StringInfo out, double num);

/* Text without U+FDD0..U+FDEF and the last two code points of each plane (the text is valid UTF-8 without NUL already). */
extern bool syn_text_ok(const char *str, int len);

#endif							/* SYNCHRO_JCS_H */
