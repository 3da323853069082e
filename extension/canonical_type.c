/*
 * canonical_type.c
 *		Which PostgreSQL types have which portable type, and the session's cache of codecs.
 */
#include "postgres.h"

#include "access/transam.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "canonical_codec.h"

static const char *const type_names[] = {
	[SYN_STRING] = "string",
	[SYN_INT] = "int",
	[SYN_INT64] = "int64",
	[SYN_DECIMAL] = "decimal",
	[SYN_FLOAT] = "float",
	[SYN_BOOLEAN] = "boolean",
	[SYN_DATETIME] = "datetime",
	[SYN_DATE] = "date",
	[SYN_TIME] = "time",
	[SYN_JSON] = "json",
	[SYN_BYTES] = "bytes",
};

/* Types with a form of their own. */
static const struct
{
	Oid			typid;
	SynType		type;
	SynMethod	method;
}			builtin_types[] = {
	{TEXTOID, SYN_STRING, SYN_M_TEXT},
	{VARCHAROID, SYN_STRING, SYN_M_TEXT},
	{BPCHAROID, SYN_STRING, SYN_M_TEXT},
	{UUIDOID, SYN_STRING, SYN_M_UUID},
	{CHAROID, SYN_STRING, SYN_M_CHAR},
	{INT2OID, SYN_INT, SYN_M_INT2},
	{INT4OID, SYN_INT, SYN_M_INT4},
	{INT8OID, SYN_INT64, SYN_M_INT8},
	{NUMERICOID, SYN_DECIMAL, SYN_M_NUMERIC},
	{FLOAT4OID, SYN_FLOAT, SYN_M_FLOAT4},
	{FLOAT8OID, SYN_FLOAT, SYN_M_FLOAT8},
	{BOOLOID, SYN_BOOLEAN, SYN_M_BOOL},
	{TIMESTAMPOID, SYN_DATETIME, SYN_M_TIMESTAMP},
	{TIMESTAMPTZOID, SYN_DATETIME, SYN_M_TIMESTAMP},
	{DATEOID, SYN_DATE, SYN_M_DATE},
	{TIMEOID, SYN_TIME, SYN_M_TIME},
	{JSONOID, SYN_JSON, SYN_M_JSON},
	{JSONBOID, SYN_JSON, SYN_M_JSONB},
	{BYTEAOID, SYN_BYTES, SYN_M_BYTEA},
};

static HTAB *codecs = NULL;

const char *
syn_type_name(SynType type)
{
	return type_names[type];
}

bool
syn_type_by_name(const char *name, int len, SynType *out)
{
	for (int t = SYN_STRING; t <= SYN_BYTES; t++)
	{
		if ((size_t) len == strlen(type_names[t]) && memcmp(name, type_names[t], len) == 0)
		{
			*out = t;
			return true;
		}
	}
	return false;
}

/*
 * Array of a user-defined type with a delimiter of its own (PostGIS has one)? Projections hold arrays of user-defined types as
 * text[], which separates by commas.
 */
static bool
strange_delimiter(Oid element)
{
	int16		typlen;
	bool		typbyval;
	char		typalign;
	char		delimiter;
	Oid			ioparam;
	Oid			function;

	if (element < FirstUnpinnedObjectId)
		return false;
	get_type_io_data(element, IOFunc_output, &typlen, &typbyval, &typalign, &delimiter, &ioparam, &function);
	return delimiter != ',';
}

/*
 * Is the output text of a type a function of the value alone, once the date, interval, float and bytea settings are pinned? Its
 * output function says so by being IMMUTABLE (base types need a superuser, so it can be believed). money depends on the locale,
 * reg* types on search_path and the catalog, composite types on their definition: their output functions are STABLE. xml is left
 * out because its input depends on xmloption.
 */
static bool
stable_text(Oid typid)
{
	Oid			base = getBaseType(typid);
	Oid			element;
	Oid			output;
	bool		varlena;

	switch (base)
	{
		case DATEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
		case INTERVALOID:
			return true;
		case XMLOID:
			return false;
	}
	switch (get_typtype(base))
	{
		case TYPTYPE_ENUM:
			return true;
		case TYPTYPE_RANGE:
			return stable_text(get_range_subtype(base));
		case TYPTYPE_MULTIRANGE:
			return stable_text(get_multirange_range(base));
		case TYPTYPE_BASE:
			element = get_element_type(base);
			if (OidIsValid(element))
				return stable_text(element) && !strange_delimiter(getBaseType(element));
			getTypeOutputInfo(base, &output, &varlena);
			return func_volatile(output) == PROVOLATILE_IMMUTABLE;
		default:
			return false;		/* composite and pseudo-types */
	}
}

/* Does the output of a built-in type consist of printable ASCII only? Spares the search for noncharacters. */
static bool
ascii_output(Oid base)
{
	char		category;
	bool		preferred;

	if (base >= FirstUnpinnedObjectId)
		return false;
	if (base == MACADDROID || base == MACADDR8OID || base == PG_LSNOID || base == BYTEAOID || base == UUIDOID)
		return true;
	get_type_category_preferred(base, &category, &preferred);
	return strchr("BDGINRTV", category) != NULL;
}

/* Finds type and method for a base type. */
static bool
classify(Oid base, bool as_text, SynType *type, SynMethod *method)
{
	if (!as_text)
	{
		Oid			element;

		for (int i = 0; i < lengthof(builtin_types); i++)
		{
			if (builtin_types[i].typid == base)
			{
				*type = builtin_types[i].type;
				*method = builtin_types[i].method;
				return true;
			}
		}

		/* an array is a JSON array of portable elements; arrays in arrays (through a domain) are none */
		element = get_element_type(base);
		if (OidIsValid(element) && base != INT2VECTOROID && base != OIDVECTOROID)	/* those count from 0 */
		{
			element = getBaseType(element);
			if (OidIsValid(get_element_type(element)) || strange_delimiter(element) ||
				!classify(element, false, type, method))
				return false;
			*type = SYN_JSON;
			*method = SYN_M_ARRAY;
			return true;
		}
	}

	*type = SYN_STRING;
	switch (base)
	{
		case TEXTOID:
		case VARCHAROID:
		case BPCHAROID:
		case JSONOID:
			*method = SYN_M_TEXT;
			return true;
		case UUIDOID:
			*method = SYN_M_UUID;
			return true;
		case CHAROID:
			*method = SYN_M_CHAR;
			return true;
	}
	*method = SYN_M_OUTPUT;
	return stable_text(base);
}

bool
syn_portable_type(Oid typid, bool as_text, SynType *out)
{
	SynMethod	method;

	return classify(getBaseType(typid), as_text, out, &method);
}

/* Fills a new codec; false: the column's type and the manifest's type don't fit. */
static bool
codec_init(SynCodec *codec, MemoryContext mcxt)
{
	Oid			base = getBaseType(codec->key.typid);
	SynType		type;
	Oid			function;
	bool		varlena;

	if (!classify(base, codec->key.as_text, &type, &codec->method) || type != codec->key.type)
		return false;
	if (codec->method == SYN_M_OUTPUT)
	{
		codec->ascii = ascii_output(base);
		getTypeOutputInfo(base, &function, &varlena);
		fmgr_info_cxt(function, &codec->output, mcxt);
	}
	else if (codec->method == SYN_M_ARRAY)
	{
		codec->elemtype = getBaseType(get_element_type(base));
		if (!syn_portable_type(codec->elemtype, false, &type))
			return false;
		codec->element = syn_codec(codec->elemtype, type, false);
		get_typlenbyvalalign(codec->elemtype, &codec->elemlen, &codec->elembyval, &codec->elemalign);
	}
	return true;
}

/*
 * Codecs are kept for the session and never invalidated: what they hold of a type (its base, element and output function) can't
 * be changed, and an OID is not used again within any session's life.
 */
const SynCodec *
syn_codec(Oid typid, SynType type, bool as_text)
{
	SynCodecKey key;
	SynCodec   *codec;
	SynCodec	fresh;

	if (!codecs)
	{
		HASHCTL		ctl = {.keysize = sizeof(SynCodecKey), .entrysize = sizeof(SynCodec), .hcxt = TopMemoryContext};

		codecs = hash_create("synchro codecs", 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}

	MemSet(&key, 0, sizeof(key));	/* padding is hashed */
	key.typid = typid;
	key.type = type;
	key.as_text = as_text;
	codec = hash_search(codecs, &key, HASH_FIND, NULL);
	if (codec)
		return codec;

	/* build it outside the table: catalog lookups may raise */
	MemSet(&fresh, 0, sizeof(fresh));
	fresh.key = key;
	if (!codec_init(&fresh, TopMemoryContext))
		return NULL;
	codec = hash_search(codecs, &key, HASH_ENTER, NULL);
	*codec = fresh;
	return codec;
}

PG_FUNCTION_INFO_V1(synchro_portable_type);
Datum
synchro_portable_type(PG_FUNCTION_ARGS)
{
	SynType		type;

	/* A dropped column has no type, and a query may come to it before it comes to the condition that leaves it out. */
	if (!OidIsValid(PG_GETARG_OID(0)) || !syn_portable_type(PG_GETARG_OID(0), PG_GETARG_BOOL(1), &type))
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(syn_type_name(type)));
}
