/*
 * canonical_key.c
 *		Row keys: key text (fences, client), compact key octets (storage, in identity order), JSON.
 *
 * The octets of a key order like its row_identity within one table: a string's length first, then its octets; integers as unsigned
 * octets of their two's complement.
 *
 *   string  length ‖ UTF-8; length is one octet below 128, else 0x80|n and n big-endian octets, n minimal
 *   int     4 octets big-endian
 *   int64   8 octets big-endian
 */
#include "postgres.h"

#include "compat.h"

#include "port/pg_bswap.h"
#include "utils/builtins.h"

#include "canonical.h"
#include "errcodes.h"

/* An integer in canonical decimal form: no plus, no leading zero, no -0. */
static bool
parse_int(const char *str, int len, int64 *out)
{
	uint64		limit = PG_INT64_MAX;
	uint64		value = 0;
	bool		negative = len > 0 && str[0] == '-';

	if (negative)
	{
		limit++;
		str++;
		len--;
	}
	if (len < 1 || len > 19 || (str[0] == '0' && (len > 1 || negative)))
		return false;
	for (int i = 0; i < len; i++)
	{
		if (str[i] < '0' || str[i] > '9')
			return false;
		value = value * 10 + (str[i] - '0');	/* 19 digits fit 64 bits */
	}
	if (value > limit)
		return false;
	*out = negative ? (int64) (0 - value) : (int64) value;
	return true;
}

bool
syn_key_from_text(SynType type, const char *str, int len, SynValue *out)
{
	out->type = type;
	out->isnull = false;
	switch (type)
	{
		case SYN_STRING:
			out->data = str;
			out->len = len;
			return syn_text_ok(str, len);
		case SYN_INT:
			return parse_int(str, len, &out->num) && out->num >= PG_INT32_MIN && out->num <= PG_INT32_MAX;
		case SYN_INT64:
			return parse_int(str, len, &out->num);
		default:
			return false;
	}
}

bool
syn_key_from_bytes(SynType type, const char *data, int len, SynValue *out)
{
	const unsigned char *s = (const unsigned char *) data;
	uint32		n32;
	uint64		n64;

	out->type = type;
	out->isnull = false;
	switch (type)
	{
		case SYN_STRING:
			{
				int			head = 1;
				uint64		size = 0;

				if (len < 1)
					return false;
				if (s[0] < 0x80)
					size = s[0];
				else
				{
					head += s[0] & 0x7F;
					if (head < 2 || head > 5 || head > len || s[1] == 0)
						return false;
					for (int i = 1; i < head; i++)
						size = size << 8 | s[i];
					if (size < 0x80)
						return false;
				}
				if (size != (uint64) (len - head))
					return false;
				out->data = data + head;
				out->len = (int) size;
				return true;
			}
		case SYN_INT:
			if (len != sizeof(n32))
				return false;
			memcpy(&n32, s, sizeof(n32));
			out->num = (int32) pg_ntoh32(n32);
			return true;
		case SYN_INT64:
			if (len != sizeof(n64))
				return false;
			memcpy(&n64, s, sizeof(n64));
			out->num = (int64) pg_ntoh64(n64);
			return true;
		default:
			return false;
	}
}

void
syn_key_append_bytes(StringInfo out, const SynValue *key)
{
	switch (key->type)
	{
		case SYN_INT:
			syn_append_u32(out, (uint32) (int32) key->num);
			break;
		case SYN_INT64:
			syn_append_u64(out, (uint64) key->num);
			break;
		default:
			if (key->len < 0x80)
				appendStringInfoChar(out, key->len);
			else
			{
				int			n = key->len > 0xFFFFFF ? 4 : key->len > 0xFFFF ? 3 : key->len > 0xFF ? 2 : 1;

				appendStringInfoChar(out, 0x80 | n);
				while (n-- > 0)
					appendStringInfoChar(out, (key->len >> (8 * n)) & 0xFF);
			}
			appendBinaryStringInfo(out, key->data, key->len);
	}
}

void
syn_key_append_text(StringInfo out, const SynValue *key)
{
	if (key->type == SYN_STRING)
		appendBinaryStringInfo(out, key->data, key->len);
	else
		appendStringInfo(out, INT64_FORMAT, key->num);
}

/* Argument 0: the portable key type. */
static SynType
key_type(FunctionCallInfo fcinfo)
{
	text	   *name = PG_GETARG_TEXT_PP(0);
	SynType		type;

	if (!syn_type_by_name(VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name), &type) ||
		(type != SYN_STRING && type != SYN_INT && type != SYN_INT64))
		ereport(ERROR,
				(errcode(SYNCHRO_ERR_INVALID_PARAMETER),
				 errmsg("key type must be string, int or int64")));
	return type;
}

/* Argument 1: key octets. */
static void
key_from_bytea(FunctionCallInfo fcinfo, SynValue *key)
{
	bytea	   *arg = PG_GETARG_BYTEA_PP(1);

	if (!syn_key_from_bytes(key_type(fcinfo), VARDATA_ANY(arg), VARSIZE_ANY_EXHDR(arg), key))
		ereport(ERROR,
				(errcode(SYNCHRO_ERR_INVALID_PARAMETER),
				 errmsg("malformed key octets")));
}

PG_FUNCTION_INFO_V1(synchro_key_bytes);
Datum
synchro_key_bytes(PG_FUNCTION_ARGS)
{
	text	   *arg = PG_GETARG_TEXT_PP(1);
	SynValue	key;
	StringInfoData out;

	if (!syn_key_from_text(key_type(fcinfo), VARDATA_ANY(arg), VARSIZE_ANY_EXHDR(arg), &key))
		ereport(ERROR,
				(errcode(SYNCHRO_ERR_INVALID_PARAMETER),
				 errmsg("malformed key text")));
	initStringInfo(&out);
	syn_key_append_bytes(&out, &key);
	PG_RETURN_BYTEA_P((bytea *) cstring_to_text_with_len(out.data, out.len));
}

PG_FUNCTION_INFO_V1(synchro_key_text);
Datum
synchro_key_text(PG_FUNCTION_ARGS)
{
	SynValue	key;
	StringInfoData out;

	key_from_bytea(fcinfo, &key);
	initStringInfo(&out);
	syn_key_append_text(&out, &key);
	PG_RETURN_TEXT_P(cstring_to_text_with_len(out.data, out.len));
}

PG_FUNCTION_INFO_V1(synchro_key_json);
Datum
synchro_key_json(PG_FUNCTION_ARGS)
{
	SynValue	key;
	StringInfoData out;

	key_from_bytea(fcinfo, &key);
	initStringInfo(&out);
	syn_append_json(&out, &key);
	PG_RETURN_TEXT_P(cstring_to_text_with_len(out.data, out.len));
}
