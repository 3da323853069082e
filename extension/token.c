/*
 * token.c
 *		Signed tokens: cursors, rebuild continuations, seed pages and receipts.
 *
 * Form: prefix.base64url(payload).base64url(mac). The payload is the RFC 8785 text of a flat object of strings, integers and
 * booleans, with the id of the signing key as member "kid". The MAC is HMAC-SHA-256 over domain, 00 and payload. Nothing of a
 * token is looked at before its MAC holds, and only the one spelling that we would have written is accepted.
 */
#include "postgres.h"

#include "common/hmac.h"
#include "common/sha2.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/numeric.h"

#include "compat.h"
#include "jcs.h"
#include "secret.h"
#include "token.h"

#define MAC_LEN PG_SHA256_DIGEST_LENGTH
#define MAC_TEXT_LEN 43			/* base64url of 32 octets */
#define TOKEN_MAX 65536

typedef struct TokenKind
{
	const char *purpose;		/* of its keys */
	const char *prefix;
	const char *domain;
} TokenKind;

static const TokenKind token_kinds[] = {
	{"cursor", "ic1.", "synchro:v3:incremental-cursor:v1"},
	{"rebuild", "rc1.", "synchro:v3:rebuild-continuation:v1"},
	{"seed_page", "sp1.", "synchro:v3:seed-page:v1"},
	{"seed_receipt", "sc1.", "synchro:v3:seed-continuation:v1"},
};

PG_FUNCTION_INFO_V1(synchro_token_sign);
PG_FUNCTION_INFO_V1(synchro_token_open);
PG_FUNCTION_INFO_V1(synchro_token_key);

static const TokenKind *
token_kind(const char *purpose)
{
	for (int i = 0; i < (int) lengthof(token_kinds); i++)
		if (strcmp(token_kinds[i].purpose, purpose) == 0)
			return &token_kinds[i];
	elog(ERROR, "no such kind of token");
	return NULL;				/* keep the compiler quiet */
}

static void
compute_mac(const TokenKind *kind, const SynchroSecret *key, const char *payload, int len, uint8 *mac)
{
	pg_hmac_ctx *ctx = pg_hmac_create(PG_SHA256);

	/* The terminating NUL of the domain is the 00 that separates it from the payload. */
	if (ctx == NULL ||
		pg_hmac_init(ctx, key->secret, key->len) < 0 ||
		pg_hmac_update(ctx, (const uint8 *) kind->domain, strlen(kind->domain) + 1) < 0 ||
		pg_hmac_update(ctx, (const uint8 *) payload, len) < 0 ||
		pg_hmac_final(ctx, mac, MAC_LEN) < 0)
		elog(ERROR, "could not compute a message authentication code");
	pg_hmac_free(ctx);
}

/* Takes as long whatever the difference. */
static bool
equal_macs(const uint8 *a, const uint8 *b)
{
	uint8		difference = 0;

	for (int i = 0; i < MAC_LEN; i++)
		difference |= a[i] ^ b[i];
	return difference == 0;
}

static const char base64_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static void
append_base64url(StringInfo out, const uint8 *data, int len)
{
	char	   *to;

	enlargeStringInfo(out, len * 4 / 3 + 4);
	to = out->data + out->len;
	for (; len >= 3; data += 3, len -= 3)
	{
		uint32		bits = data[0] << 16 | data[1] << 8 | data[2];

		*to++ = base64_digits[bits >> 18];
		*to++ = base64_digits[bits >> 12 & 63];
		*to++ = base64_digits[bits >> 6 & 63];
		*to++ = base64_digits[bits & 63];
	}
	if (len > 0)
	{
		uint32		bits = data[0] << 8 | (len > 1 ? data[1] : 0);

		*to++ = base64_digits[bits >> 10];
		*to++ = base64_digits[bits >> 4 & 63];
		if (len > 1)
			*to++ = base64_digits[bits << 2 & 63];
	}
	out->len = to - out->data;
	*to = '\0';
}

/* Decodes into out (room for len octets); -1: not the one spelling of any octets. */
static int
decode_base64url(const char *text, int len, uint8 *out)
{
	static int8 values[256];	/* of digits, plus one; 0 for other octets */
	uint32		bits = 0;
	int			n = 0;
	int			written = 0;

	if (values['A'] == 0)
		for (int i = 0; i < 64; i++)
			values[(uint8) base64_digits[i]] = i + 1;
	for (int i = 0; i < len; i++)
	{
		int			digit = values[(uint8) text[i]];

		if (digit == 0)
			return -1;
		bits = bits << 6 | (digit - 1);
		n += 6;
		if (n >= 8)
		{
			n -= 8;
			out[written++] = bits >> n & 255;
		}
	}
	/* Six or more bits left: an impossible length; bits set: another spelling of the same octets. */
	if (n >= 6 || (bits & ((1u << n) - 1)) != 0)
		return -1;
	return written;
}

/* --- signing --- */

typedef struct Pair
{
	char	   *name;
	int			namelen;
	JsonbValue	value;
} Pair;

/* Order of ASCII member names, which for them is the order of RFC 8785. */
static int
compare_pairs(const void *a, const void *b)
{
	const Pair *x = a;
	const Pair *y = b;
	int			diff = memcmp(x->name, y->name, Min(x->namelen, y->namelen));

	return diff != 0 ? diff : x->namelen - y->namelen;
}

static void
append_value(StringInfo out, const JsonbValue *v)
{
	switch (v->type)
	{
		case jbvString:
			jcs_append_string(out, v->val.string.val, v->val.string.len);
			break;
		case jbvNumeric:
			{
				/* int8 raises for what is no integer; its text then is the canonical one. */
				int64		n = DatumGetInt64(DirectFunctionCall1(numeric_int8, NumericGetDatum(v->val.numeric)));

				if (n < -INT64CONST(9007199254740991) || n > INT64CONST(9007199254740991))
					elog(ERROR, "a number in a token is out of range");
				appendStringInfo(out, INT64_FORMAT, n);
				break;
			}
		case jbvBool:
			appendStringInfoString(out, v->val.boolean ? "true" : "false");
			break;
		default:
			elog(ERROR, "a token holds strings, integers and booleans");
	}
}

/* Canonical text of the payload with the member kid. */
static void
append_payload(StringInfo out, Jsonb *payload, const char *key_id)
{
	JsonbIterator *it = JsonbIteratorInit(&payload->root);
	JsonbValue	v;
	JsonbIteratorToken tok;
	Pair	   *pairs = palloc((JB_ROOT_COUNT(payload) + 1) * sizeof(Pair));
	int			n = 0;

	if (!JB_ROOT_IS_OBJECT(payload))
		elog(ERROR, "the payload of a token is an object");
	while ((tok = JsonbIteratorNext(&it, &v, true)) != WJB_DONE)
	{
		if (tok == WJB_KEY)
		{
			pairs[n].name = v.val.string.val;
			pairs[n].namelen = v.val.string.len;
		}
		else if (tok == WJB_VALUE)
			pairs[n++].value = v;
	}
	pairs[n].name = "kid";
	pairs[n].namelen = 3;
	pairs[n].value.type = jbvString;
	pairs[n].value.val.string.val = unconstify(char *, key_id);
	pairs[n++].value.val.string.len = strlen(key_id);
	qsort(pairs, n, sizeof(Pair), compare_pairs);

	for (int i = 0; i < n; i++)
	{
		appendStringInfoChar(out, i == 0 ? '{' : ',');
		jcs_append_string(out, pairs[i].name, pairs[i].namelen);
		appendStringInfoChar(out, ':');
		append_value(out, &pairs[i].value);
	}
	appendStringInfoChar(out, '}');
}

/* Wraps a canonical payload, which names this key, into a token. */
text *
token_seal(const SynchroSecret *key, const StringInfoData *payload)
{
	const TokenKind *kind = token_kind(key->purpose);
	StringInfoData token;
	uint8		mac[MAC_LEN];

	compute_mac(kind, key, payload->data, payload->len, mac);
	initStringInfo(&token);
	appendStringInfoString(&token, kind->prefix);
	append_base64url(&token, (uint8 *) payload->data, payload->len);
	appendStringInfoChar(&token, '.');
	append_base64url(&token, mac, MAC_LEN);
	return cstring_to_text_with_len(token.data, token.len);
}

/* _token_sign(purpose text, payload jsonb, key_id text): a key_id of NULL means the active key. */
Datum
synchro_token_sign(PG_FUNCTION_ARGS)
{
	char	   *purpose;
	Jsonb	   *payload;
	const SynchroSecret *key;
	StringInfoData buf;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		elog(ERROR, "a token needs a purpose and a payload");
	purpose = text_to_cstring(PG_GETARG_TEXT_PP(0));
	payload = PG_GETARG_JSONB_P(1);
	key = PG_ARGISNULL(2) ? synchro_active_secret(purpose)
		: synchro_secret_by_id(purpose, text_to_cstring(PG_GETARG_TEXT_PP(2)));
	if (key == NULL)
		PG_RETURN_NULL();
	initStringInfo(&buf);
	append_payload(&buf, payload, key->key_id);
	PG_RETURN_TEXT_P(token_seal(key, &buf));
}

/* _token_key(purpose text) text: id of the key that signs now. */
Datum
synchro_token_key(PG_FUNCTION_ARGS)
{
	const SynchroSecret *key = synchro_active_secret(text_to_cstring(PG_GETARG_TEXT_PP(0)));

	if (key == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(key->key_id));
}

/* --- opening --- */

/* Is the authenticated payload exactly what we would have written with this key? */
static bool
is_canonical(const char *payload, int len, const char *key_id)
{
	JcsError	error;
	JcsNode    *root = jcs_parse(payload, len, 0, &error);
	StringInfoData again;

	if (root == NULL || root->kind != JCS_OBJECT || !jcs_string_is(jcs_member(root, "kid"), key_id))
		return false;
	for (int i = 0; i < root->len; i++)
	{
		JcsNode    *value = root->u.members[i].value;
		int64		n;

		if (value->kind == JCS_NULL || value->kind == JCS_ARRAY || value->kind == JCS_OBJECT ||
			(value->kind == JCS_NUMBER && !jcs_integer(value, &n)))
			return false;
	}
	initStringInfo(&again);
	jcs_append(&again, root);
	return again.len == len && memcmp(again.data, payload, len) == 0;
}

/* Splits a token and finds the key that signed it. Returns the payload as C string, or NULL. */
char *
token_unseal(const char *purpose, const text *token, int *payload_len, const SynchroSecret **signer)
{
	const TokenKind *kind = token_kind(purpose);
	const char *data = VARDATA_ANY(token);
	int			len = VARSIZE_ANY_EXHDR(token);
	int			prefix_len = strlen(kind->prefix);
	int			text_len = len - prefix_len - 1 - MAC_TEXT_LEN;
	const SynchroSecret *key = NULL;
	char	   *payload;
	uint8		presented[MAC_LEN];
	uint8		mac[MAC_LEN];

	if (len > TOKEN_MAX || text_len < 1 || memcmp(data, kind->prefix, prefix_len) != 0 ||
		data[prefix_len + text_len] != '.')
		return NULL;
	payload = palloc(text_len + 1);
	*payload_len = decode_base64url(data + prefix_len, text_len, (uint8 *) payload);
	if (*payload_len < 0 || decode_base64url(data + len - MAC_TEXT_LEN, MAC_TEXT_LEN, presented) != MAC_LEN)
		return NULL;
	payload[*payload_len] = '\0';
	while ((key = synchro_next_secret(kind->purpose, key)) != NULL)
	{
		compute_mac(kind, key, payload, *payload_len, mac);
		if (equal_macs(mac, presented))
		{
			*signer = key;
			return payload;
		}
	}
	return NULL;
}

/* _token_open(purpose text, token text) jsonb: the payload, or NULL. */
Datum
synchro_token_open(PG_FUNCTION_ARGS)
{
	char	   *purpose = text_to_cstring(PG_GETARG_TEXT_PP(0));
	const SynchroSecret *signer;
	int			len;
	char	   *payload = token_unseal(purpose, PG_GETARG_TEXT_PP(1), &len, &signer);

	if (payload == NULL || !is_canonical(payload, len, signer->key_id))
		PG_RETURN_NULL();
	return DirectFunctionCall1(jsonb_in, CStringGetDatum(payload));
}
