/*
 * canonical_wire.c
 *		JSON in canonical wire form -> portable value -> text for PostgreSQL's input functions.
 *
 * A value that isn't in its one canonical form is refused: what a client signs with a fingerprint or a digest has one spelling.
 */
#include "postgres.h"

#include "compat.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/lsyscache.h"

#include "canonical_codec.h"
#include "errcodes.h"

/* numeric's type modifier, as numeric.c packs it (PostgreSQL 15 and later: the scale has 11 bits and a sign) */
#define NUMERIC_PRECISION(typmod) ((((typmod) - VARHDRSZ) >> 16) & 0xffff)
#define NUMERIC_SCALE(typmod) (((((typmod) - VARHDRSZ) & 0x7ff) ^ 1024) - 1024)

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* -?(0|[1-9][0-9]*)(\.[0-9]*[1-9])? without -0, within precision and scale. */
static bool
decimal_ok(const char *s, int len, int precision, int scale)
{
	const char *end = s + len;
	const char *whole;
	const char *fraction;
	int			nwhole;
	int			nfraction = 0;
	int			zeros = 0;
	bool		negative = len > 0 && *s == '-';

	if (negative)
		s++;
	whole = s;
	while (s < end && is_digit(*s))
		s++;
	nwhole = s - whole;
	if (nwhole == 0 || (*whole == '0' && nwhole > 1))
		return false;
	fraction = s;
	if (s < end)
	{
		if (*s++ != '.')
			return false;
		fraction = s;
		while (s < end && is_digit(*s))
			s++;
		nfraction = s - fraction;
		if (s != end || nfraction == 0 || s[-1] == '0')
			return false;
	}
	if (*whole == '0')
	{
		if (negative && nfraction == 0)
			return false;
		nwhole = 0;
	}
	if (precision < 0)
		return true;

	/* a negative scale rounds whole digits away; a scale above the precision asks for zeros behind the point */
	if (nfraction > Max(scale, 0))
		return false;
	for (int i = nwhole; i > 0 && whole[i - 1] == '0'; i--)
		zeros++;
	if (nwhole > 0 && zeros < -scale)
		return false;
	if (precision >= scale)
		return nwhole <= precision - scale;
	for (zeros = 0; zeros < nfraction && fraction[zeros] == '0'; zeros++)
		;
	return nwhole == 0 && (nfraction == 0 || zeros >= scale - precision);
}

/* n digits as a number, or -1. */
static int
digits(const char *s, int n)
{
	int			value = 0;

	for (int i = 0; i < n; i++)
	{
		if (!is_digit(s[i]))
			return -1;
		value = value * 10 + (s[i] - '0');
	}
	return value;
}

/* YYYY-MM-DD */
static bool
date_ok(const char *s)
{
	int			year = digits(s, 4);
	int			month = digits(s + 5, 2);
	int			day = digits(s + 8, 2);

	return s[4] == '-' && s[7] == '-' && year >= 1 && month >= 1 && month <= 12 &&
		day >= 1 && day <= day_tab[isleap(year)][month - 1];
}

/* HH:MM:SS.ffffff */
static bool
time_ok(const char *s)
{
	int			hour = digits(s, 2);
	int			minute = digits(s + 3, 2);
	int			second = digits(s + 6, 2);

	return s[2] == ':' && s[5] == ':' && s[8] == '.' && hour >= 0 && hour <= 23 && minute >= 0 && minute <= 59 &&
		second >= 0 && second <= 59 && digits(s + 9, 6) >= 0;
}

static int
base64url_digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (is_digit(c))
		return c - '0' + 52;
	return c == '-' ? 62 : c == '_' ? 63 : -1;
}

/* Without padding; unused bits of the last digit must be zero. */
static bool
from_base64url(const char *s, int len, SynValue *out)
{
	char	   *data = palloc(len / 4 * 3 + 3);
	char	   *d = data;
	uint32		bits = 0;

	if (len % 4 == 1)
		return false;
	for (int i = 0; i < len; i++)
	{
		int			digit = base64url_digit(s[i]);

		if (digit < 0)
			return false;
		bits = bits << 6 | digit;
		if (i % 4 == 1)
			*d++ = bits >> 4;
		else if (i % 4 == 2)
			*d++ = bits >> 2;
		else if (i % 4 == 3)
			*d++ = bits;
	}
	if ((len % 4 == 2 && (bits & 15)) || (len % 4 == 3 && (bits & 3)))
		return false;
	out->data = data;
	out->len = d - data;
	return true;
}

/* A string node holding the RFC 8785 text of a JSON value. */
static bool
json_ok(const JcsNode *node)
{
	char	   *str = jcs_string_dup(node);
	JcsError	error;
	JcsNode    *parsed = jcs_parse(str, node->len, JCS_SAFE_NUMBERS, &error);
	StringInfoData buf;

	if (!parsed)
		return false;
	initStringInfo(&buf);
	jcs_append(&buf, parsed);
	return buf.len == node->len && memcmp(buf.data, str, buf.len) == 0;
}

static bool
from_number(const JcsNode *node, SynValue *out)
{
	StringInfoData buf;

	initStringInfo(&buf);
	jcs_append_number(&buf, node->u.num);
	if (buf.len != node->rawlen || memcmp(buf.data, node->raw, buf.len) != 0)
		return false;
	out->real = node->u.num;
	return true;
}

bool
syn_from_wire(SynType type, int precision, int scale, const JcsNode *node, SynValue *out)
{
	out->type = type;
	out->isnull = node->kind == JCS_NULL;
	if (out->isnull)
		return true;

	switch (type)
	{
		case SYN_BOOLEAN:
			out->num = node->kind == JCS_TRUE;
			return node->kind == JCS_TRUE || node->kind == JCS_FALSE;
		case SYN_INT:
			return jcs_integer(node, &out->num) && out->num >= PG_INT32_MIN && out->num <= PG_INT32_MAX;
		case SYN_FLOAT:
			return node->kind == JCS_NUMBER && from_number(node, out);
		default:
			break;
	}

	if (node->kind != JCS_STRING)
		return false;
	out->data = node->u.str;
	out->len = node->len;
	switch (type)
	{
		case SYN_STRING:
			return true;
		case SYN_INT64:
			return syn_key_from_text(SYN_INT64, node->u.str, node->len, out);
		case SYN_DECIMAL:
			return decimal_ok(out->data, out->len, precision, scale);
		case SYN_DATETIME:
			return out->len == 27 && date_ok(out->data) && out->data[10] == 'T' && time_ok(out->data + 11) &&
				out->data[26] == 'Z';
		case SYN_DATE:
			return out->len == 10 && date_ok(out->data);
		case SYN_TIME:
			return out->len == 15 && time_ok(out->data);
		case SYN_JSON:
			return json_ok(node);
		case SYN_BYTES:
			return from_base64url(node->u.str, node->len, out);
		default:
			return false;
	}
}

bool
syn_wire_to_text(SynType type, Oid target, int32 typmod, const JcsNode *node, char **out)
{
	Oid			base = OidIsValid(target) ? getBaseTypeAndTypmod(target, &typmod) : InvalidOid;
	int			precision = -1;
	int			scale = 0;
	SynValue	value;
	StringInfoData buf;
	JcsError	error;

	if (type == SYN_DECIMAL && base == NUMERICOID && typmod >= (int32) VARHDRSZ)
	{
		precision = NUMERIC_PRECISION(typmod);
		scale = NUMERIC_SCALE(typmod);
	}
	if (!syn_from_wire(type, precision, scale, node, &value))
		return false;
	*out = NULL;
	if (value.isnull)
		return true;
	/* the input functions of these two cut what is too long */
	if (type == SYN_STRING && ((base == NAMEOID && value.len >= NAMEDATALEN) || (base == CHAROID && value.len > 1)))
		return false;

	initStringInfo(&buf);
	switch (type)
	{
		case SYN_INT:
		case SYN_INT64:
			appendStringInfo(&buf, INT64_FORMAT, value.num);
			break;
		case SYN_FLOAT:
			jcs_append_number(&buf, value.real);
			break;
		case SYN_BOOLEAN:
			appendStringInfoString(&buf, value.num ? "true" : "false");
			break;
		case SYN_BYTES:
			appendStringInfoString(&buf, "\\x");
			enlargeStringInfo(&buf, value.len * 2);
			buf.len += hex_encode(value.data, value.len, buf.data + buf.len);
			buf.data[buf.len] = '\0';
			break;
		case SYN_JSON:
			if (OidIsValid(base) && OidIsValid(get_element_type(base)))
			{
				char	   *str = pnstrdup(value.data, value.len);

				/* checked above already: the text parses */
				if (!syn_array_literal(base, jcs_parse(str, value.len, JCS_SAFE_NUMBERS, &error), &buf))
					return false;
				break;
			}
			/* FALLTHROUGH */
		default:
			appendBinaryStringInfo(&buf, value.data, value.len);
	}
	*out = buf.data;
	return true;
}

/* _wire_value(p_type text, p_value json, p_target oid, p_typmod int) */
PG_FUNCTION_INFO_V1(synchro_wire_value);
Datum
synchro_wire_value(PG_FUNCTION_ARGS)
{
	text	   *name = PG_GETARG_TEXT_PP(0);
	char	   *json = TextDatumGetCString(PG_GETARG_DATUM(1));
	SynType		type;
	JcsError	error;
	JcsNode    *node;
	char	   *out;

	if (!syn_type_by_name(VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name), &type))
		ereport(ERROR,
				(errcode(SYNCHRO_ERR_INVALID_PARAMETER),
				 errmsg("not a portable type")));
	node = jcs_parse(json, strlen(json), 0, &error);
	if (!node || !syn_wire_to_text(type, PG_GETARG_OID(2), PG_GETARG_INT32(3), node, &out))
		ereport(ERROR,
				(errcode(SYNCHRO_ERR_UNREPRESENTABLE_WRITE),
				 errmsg("not a canonical value of type %s", syn_type_name(type))));
	if (!out)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(out));
}
