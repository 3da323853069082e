/*
 * canonical_bytes.c
 *		Portable value -> typed binary grammar and JSON; hashing.
 */
#include "postgres.h"

#include "common/cryptohash.h"
#include "port/pg_bswap.h"
#include "utils/builtins.h"

#include "canonical.h"

/* A sign and 19 digits. */
#define MAXINT8LEN 20

void
syn_append_u32(StringInfo out, uint32 n)
{
	n = pg_hton32(n);
	appendBinaryStringInfo(out, (char *) &n, sizeof(n));
}

void
syn_append_u64(StringInfo out, uint64 n)
{
	n = pg_hton64(n);
	appendBinaryStringInfo(out, (char *) &n, sizeof(n));
}

void
syn_append_blob(StringInfo out, const void *data, int len)
{
	syn_append_u64(out, len);
	appendBinaryStringInfo(out, data, len);
}

void
syn_append_text(StringInfo out, const char *str)
{
	syn_append_blob(out, str, strlen(str));
}

void
syn_append_domain(StringInfo out, const char *domain)
{
	appendBinaryStringInfo(out, domain, strlen(domain) + 1);
}

void
syn_append_base64url(StringInfo out, const char *data, int len)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	const unsigned char *s = (const unsigned char *) data;
	char	   *d;

	enlargeStringInfo(out, (len + 2) / 3 * 4);
	d = out->data + out->len;
	for (; len >= 3; len -= 3, s += 3)
	{
		*d++ = digits[s[0] >> 2];
		*d++ = digits[(s[0] & 3) << 4 | s[1] >> 4];
		*d++ = digits[(s[1] & 15) << 2 | s[2] >> 6];
		*d++ = digits[s[2] & 63];
	}
	if (len > 0)
	{
		unsigned char second = len == 2 ? s[1] : 0;

		*d++ = digits[s[0] >> 2];
		*d++ = digits[(s[0] & 3) << 4 | second >> 4];
		if (len == 2)
			*d++ = digits[(second & 15) << 2];
	}
	*d = '\0';
	out->len = d - out->data;
}

void
syn_append_typed(StringInfo out, const SynValue *value)
{
	uint64		bits;

	appendStringInfoChar(out, value->type);
	appendStringInfoChar(out, value->isnull ? 0 : 1);
	if (value->isnull)
		return;
	switch (value->type)
	{
		case SYN_INT:
			syn_append_u32(out, (uint32) (int32) value->num);
			break;
		case SYN_INT64:
			syn_append_u64(out, (uint64) value->num);
			break;
		case SYN_FLOAT:
			memcpy(&bits, &value->real, sizeof(bits));
			syn_append_u64(out, bits);
			break;
		case SYN_BOOLEAN:
			appendStringInfoChar(out, value->num ? 1 : 0);
			break;
		default:
			syn_append_blob(out, value->data, value->len);
	}
}

void
syn_append_json(StringInfo out, const SynValue *value)
{
	char		digits[MAXINT8LEN + 1];

	if (value->isnull)
	{
		appendStringInfoString(out, "null");
		return;
	}
	switch (value->type)
	{
		case SYN_INT:
			appendBinaryStringInfo(out, digits, pg_lltoa(value->num, digits));
			break;
		case SYN_INT64:
			appendStringInfoCharMacro(out, '"');
			appendBinaryStringInfo(out, digits, pg_lltoa(value->num, digits));
			appendStringInfoCharMacro(out, '"');
			break;
		case SYN_FLOAT:
			jcs_append_number(out, value->real);
			break;
		case SYN_BOOLEAN:
			appendStringInfoString(out, value->num ? "true" : "false");
			break;
		case SYN_BYTES:
			appendStringInfoCharMacro(out, '"');
			syn_append_base64url(out, value->data, value->len);
			appendStringInfoCharMacro(out, '"');
			break;
		case SYN_DECIMAL:
		case SYN_DATETIME:
		case SYN_DATE:
		case SYN_TIME:
			/* nothing to escape */
			appendStringInfoCharMacro(out, '"');
			appendBinaryStringInfo(out, value->data, value->len);
			appendStringInfoCharMacro(out, '"');
			break;
		case SYN_STRING:
		case SYN_JSON:
			jcs_append_string(out, value->data, value->len);
			break;
	}
}

void
syn_sha256(const void *data, size_t len, uint8 *out)
{
	pg_cryptohash_ctx *ctx = pg_cryptohash_create(PG_SHA256);

	if (!ctx || pg_cryptohash_init(ctx) < 0 || pg_cryptohash_update(ctx, data, len) < 0 ||
		pg_cryptohash_final(ctx, out, SYN_HASH_LEN) < 0)
		elog(ERROR, "could not compute SHA-256: %s", pg_cryptohash_error(ctx));
	pg_cryptohash_free(ctx);
}

/* 64 lowercase hexadecimal digits. */
bool
syn_parse_hash(const char *hex, int len, uint8 *out)
{
	if (len != 2 * SYN_HASH_LEN)
		return false;
	for (int i = 0; i < len; i++)
	{
		int			digit;

		if (hex[i] >= '0' && hex[i] <= '9')
			digit = hex[i] - '0';
		else if (hex[i] >= 'a' && hex[i] <= 'f')
			digit = hex[i] - 'a' + 10;
		else
			return false;
		out[i / 2] = i % 2 ? (out[i / 2] | digit) : (digit << 4);
	}
	return true;
}

char *
syn_hash_hex(const uint8 *hash)
{
	static const char digits[] = "0123456789abcdef";
	char	   *hex = palloc(2 * SYN_HASH_LEN + 1);

	for (int i = 0; i < SYN_HASH_LEN; i++)
	{
		hex[2 * i] = digits[hash[i] >> 4];
		hex[2 * i + 1] = digits[hash[i] & 15];
	}
	hex[2 * SYN_HASH_LEN] = '\0';
	return hex;
}
