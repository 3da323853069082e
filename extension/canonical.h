/*
 * canonical.h
 *		Portable form of PostgreSQL values (docs/integrity.md).
 *
 * This is the only implementation that turns a Datum into portable form. Nothing here depends on DateStyle, TimeZone,
 * IntervalStyle, extra_float_digits or bytea_output.
 */
#ifndef SYNCHRO_CANONICAL_H
#define SYNCHRO_CANONICAL_H

#include "postgres.h"

#include "access/htup.h"
#include "fmgr.h"
#include "lib/stringinfo.h"

#include "jcs.h"

/* Portable types; the numbers are the type tags of the typed binary grammar. */
typedef enum SynType
{
	SYN_STRING = 0x01,
	SYN_INT = 0x02,
	SYN_INT64 = 0x03,
	SYN_DECIMAL = 0x04,
	SYN_FLOAT = 0x05,
	SYN_BOOLEAN = 0x06,
	SYN_DATETIME = 0x07,
	SYN_DATE = 0x08,
	SYN_TIME = 0x09,
	SYN_JSON = 0x0a,
	SYN_BYTES = 0x0b
} SynType;

#define SYN_HASH_LEN 32
#define SYN_KEY_MAX 2048		/* octets of a key's text; _check_representable knows it too */

/* One portable value. Text members point to the Datum, to the current memory context, or into buf. */
typedef struct SynValue
{
	SynType		type;
	bool		isnull;
	int64		num;			/* int, int64, boolean */
	double		real;			/* float; never -0 */
	const char *data;			/* string, decimal, datetime, date, time, json; raw octets of bytes */
	int			len;
	char		buf[32];
} SynValue;

/* How values of one PostgreSQL type are turned into one portable type. */
typedef struct SynCodec SynCodec;

/* --- types (canonical_type.c) --- */

extern const char *syn_type_name(SynType type);
extern bool syn_type_by_name(const char *name, int len, SynType *out);

/* The portable type of a PostgreSQL type (domains stripped); false: none. as_text: synced as canonical text. */
extern bool syn_portable_type(Oid typid, bool as_text, SynType *out);

/* The codec from a column's type to a manifest's type, cached for the session; NULL when they don't fit. */
extern const SynCodec *syn_codec(Oid typid, SynType type, bool as_text);

/* --- values (canonical_value.c, canonical_check.c, canonical_bytes.c) --- */

/* Portable value of a non-null Datum; false: it has none. May use memory of the current context. */
extern bool syn_from_datum(const SynCodec *codec, Datum datum, SynValue *out);

/* Does a non-null Datum have a portable form? Never raises for it, leaves no memory behind, does nothing for cheap types. */
extern bool syn_codec_check(const SynCodec *codec, Datum datum);
extern bool syn_value_check(Oid typid, SynType type, bool as_text, Datum datum);

/* The settings under which output functions give canonical text, and the way back. */
typedef struct SynOutputSettings
{
	int			date_style;
	int			interval_style;
	int			float_digits;
	int			bytea_style;
	struct pg_tz *timezone;
} SynOutputSettings;

extern void syn_pin_output(SynOutputSettings *saved);
extern void syn_unpin_output(const SynOutputSettings *saved);

/* typed_value, and the wire's JSON form. */
extern void syn_append_typed(StringInfo out, const SynValue *value);
extern void syn_append_json(StringInfo out, const SynValue *value);

/* Parts of the typed binary grammar. */
extern void syn_append_u32(StringInfo out, uint32 n);
extern void syn_append_u64(StringInfo out, uint64 n);
extern void syn_append_blob(StringInfo out, const void *data, int len);
extern void syn_append_text(StringInfo out, const char *str);
extern void syn_append_domain(StringInfo out, const char *domain);	/* with its 00 */
extern void syn_append_base64url(StringInfo out, const char *data, int len);
extern void syn_sha256(const void *data, size_t len, uint8 *out);
extern bool syn_parse_hash(const char *hex, int len, uint8 *out);
extern char *syn_hash_hex(const uint8 *hash);

/* --- wire values (canonical_wire.c) --- */

/* Value of a JSON node in canonical wire form; precision < 0: an unconstrained decimal. False: refused. */
extern bool syn_from_wire(SynType type, int precision, int scale, const JcsNode *node, SynValue *out);

/*
 * Text for the input function of the target type (InvalidOid: the natural one). False: refused. JSON null: *out is NULL.
 * typmod is the column's; a decimal that does not fit it is refused, not rounded.
 */
extern bool syn_wire_to_text(SynType type, Oid target, int32 typmod, const JcsNode *node, char **out);

/* --- keys (canonical_key.c) --- */

/* Portable key of a key text (as fences carry it) or of compact key octets; false: not one of that type. */
extern bool syn_key_from_text(SynType type, const char *str, int len, SynValue *out);
extern bool syn_key_from_bytes(SynType type, const char *data, int len, SynValue *out);
extern void syn_key_append_bytes(StringInfo out, const SynValue *key);
extern void syn_key_append_text(StringInfo out, const SynValue *key);

/* --- relations under a manifest (canonical_relation.c, canonical_digest.c) --- */

typedef struct SynField
{
	const char *field_id;
	const char *column;			/* NULL: described by a manifest body only */
	int			attnum;
	SynType		type;
	bool		as_text;
	bool		nullable;
	int			precision;		/* -1: unconstrained */
	int			scale;
} SynField;

typedef struct SynRelation
{
	const char *table_id;
	uint8		schema_hash[SYN_HASH_LEN];
	int			nfields;
	SynField   *fields;			/* by field_id octets */
	int			key;			/* index of the key field */
	StringInfoData identity;	/* row_identity up to the typed value of the key */
} SynRelation;

/* Descriptor of a relation under a manifest, cached for the session; raises when there is none. Valid until the transaction ends. */
extern const SynRelation *syn_relation(int rel_no, int64 schema_version);

/* Fields in order and the identity prefix, once the members are filled in. */
extern void syn_relation_finish(SynRelation *rel);

extern char *syn_projection_key_type(int rel_no, const SynField *key);

/*
 * Values of a row, in the order of the relation's fields, good until the next row. *cached (NULL at first) is the caller's memory of
 * which column is which field, in a context under parent.
 */
typedef struct SynRowReader SynRowReader;
extern const SynValue *syn_read_row(SynRowReader **cached, int rel_no, int64 schema_version, HeapTupleHeader row,
									MemoryContext parent);

/* The same of a row that is not a tuple yet, as datums of a table's columns; row_type: of the table. */
extern const SynValue *syn_read_values(SynRowReader **cached, int rel_no, int64 schema_version, Oid row_type, const Datum *datums,
									   const bool *nulls, const SynRelation **rel, MemoryContext parent);

/* The row as a JSON object, members by field id. */
extern void syn_append_row_json(StringInfo out, const SynRelation *rel, const SynValue *values);
extern void syn_append_identity(StringInfo out, const SynRelation *rel, const SynValue *key);
extern void syn_row_digest(const SynRelation *rel, const SynValue *values, const char *server_version, int version_len,
						   StringInfo scratch, uint8 *digest);

#endif							/* SYNCHRO_CANONICAL_H */
