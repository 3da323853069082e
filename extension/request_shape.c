/*
 * request_shape.c
 *		Kinds of values in requests.
 */
#include "postgres.h"

#include "request.h"
#include "semver.h"

#define ID_MAX 255
#define LIMIT_MAX 1000
#define MUTATIONS_MAX 1000

void
check_anything(const JcsNode *value, const char *member)
{
}

void
check_text(const JcsNode *value, const char *member)
{
	if (value->kind != JCS_STRING || value->len == 0)
		refuse_request(member, "a non-empty string is expected");
}

void
check_id(const JcsNode *value, const char *member)
{
	if (value->kind != JCS_STRING || value->len == 0 || value->len > ID_MAX)
		refuse_request(member, "a string of 1 to 255 octets is expected");
}

/* Lower case, with hyphens, not nil. */
void
check_uuid(const JcsNode *value, const char *member)
{
	bool		good = value->kind == JCS_STRING && value->len == 36;
	bool		nil = true;

	for (int i = 0; good && i < 36; i++)
	{
		char		c = value->u.str[i];

		if (i == 8 || i == 13 || i == 18 || i == 23)
			good = c == '-';
		else
		{
			good = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
			nil = nil && c == '0';
		}
	}
	if (!good || nil)
		refuse_request(member, "a UUID in lower case is expected");
}

void
check_version(const JcsNode *value, const char *member)
{
	if (value->kind != JCS_STRING || !semver_is_valid(value->u.str, value->len))
		refuse_request(member, "a version as in SemVer 2.0.0 is expected");
}

void
check_boolean(const JcsNode *value, const char *member)
{
	if (value->kind != JCS_TRUE && value->kind != JCS_FALSE)
		refuse_request(member, "true or false is expected");
}

void
check_true(const JcsNode *value, const char *member)
{
	if (value->kind != JCS_TRUE)
		refuse_request(member, "true is expected");
}

void
check_positive(const JcsNode *value, const char *member)
{
	int64		n;

	if (!jcs_integer(value, &n) || n < 1)
		refuse_request(member, "a positive integer is expected");
}

void
check_counter(const JcsNode *value, const char *member)
{
	int64		n;

	if (!jcs_integer(value, &n) || n < 0)
		refuse_request(member, "an integer of at least 0 is expected");
}

void
check_limit(const JcsNode *value, const char *member)
{
	int64		n;

	if (!jcs_integer(value, &n) || n < 1 || n > LIMIT_MAX)
		refuse_request(member, "an integer from 1 to 1000 is expected");
}

void
check_cursor(const JcsNode *value, const char *member)
{
	if (value->kind != JCS_NULL && (value->kind != JCS_STRING || value->len == 0))
		refuse_request(member, "null or a non-empty string is expected");
}

void
check_mutations(const JcsNode *value, const char *member)
{
	if (value->kind != JCS_ARRAY || value->len < 1 || value->len > MUTATIONS_MAX)
		refuse_request(member, "an array of 1 to 1000 mutations is expected");
}

/* A map from scope id to {"cursor": null or string}. */
void
check_cursors(const JcsNode *value, const char *member)
{
	static const Member entry[] = {{"cursor", check_cursor, true}, {NULL}};

	if (value->kind != JCS_OBJECT)
		refuse_request(member, "an object is expected");
	for (int i = 0; i < value->len; i++)
	{
		if (value->u.members[i].namelen == 0)
			refuse_request(member, "a scope id is empty");
		check_members(value->u.members[i].value, entry);
	}
}

/* A non-empty map from scope id to receipt. */
void
check_receipts(const JcsNode *value, const char *member)
{
	if (value->kind != JCS_OBJECT || value->len == 0)
		refuse_request(member, "a non-empty object is expected");
	for (int i = 0; i < value->len; i++)
	{
		if (value->u.members[i].namelen == 0)
			refuse_request(member, "a scope id is empty");
		check_text(value->u.members[i].value, member);
	}
}

/* {"version": n > 0, "hash": 64 lower case hex}; fresh_allowed: or {"version": 0, "hash": ""}. */
bool
is_schema_reference(const JcsNode *value, bool fresh_allowed)
{
	const JcsNode *hash;
	int64		version;

	if (value->kind != JCS_OBJECT || value->len != 2 || !jcs_integer(jcs_member(value, "version"), &version) ||
		(hash = jcs_member(value, "hash")) == NULL || hash->kind != JCS_STRING)
		return false;
	if (version == 0)
		return fresh_allowed && hash->len == 0;
	if (version < 0 || hash->len != 64)
		return false;
	for (int i = 0; i < 64; i++)
	{
		char		c = hash->u.str[i];

		if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
			return false;
	}
	return true;
}

void
check_schema(const JcsNode *value, const char *member)
{
	if (!is_schema_reference(value, false))
		refuse_request(member, "a schema reference is expected");
}
