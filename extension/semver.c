/*
 * semver.c
 *		SemVer 2.0.0, exactly, and the minimum version of clients.
 */
#include "postgres.h"

#include "compat.h"

#include "fmgr.h"
#include "utils/builtins.h"

#include "semver.h"

char	   *semver_minimum = NULL;

PG_FUNCTION_INFO_V1(synchro_semver_compare);

/* A version's text, split: three numbers, then pre-release identifiers; build metadata is checked and dropped. */
typedef struct Version
{
	const char *core[3];
	int			core_len[3];
	const char *pre;			/* NULL: none */
	int			pre_len;
} Version;

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
is_identifier_char(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
}

static bool
is_numeric(const char *s, int len)
{
	for (int i = 0; i < len; i++)
		if (!is_digit(s[i]))
			return false;
	return len > 0;
}

/* Dot-separated identifiers up to `stop`; returns their end, or NULL. */
static const char *
scan_identifiers(const char *s, const char *end, char stop, bool numbers_are_canonical)
{
	for (;;)
	{
		const char *start = s;

		while (s < end && is_identifier_char(*s))
			s++;
		if (s == start || (numbers_are_canonical && is_numeric(start, s - start) && *start == '0' && s - start > 1))
			return NULL;
		if (s == end || *s == stop)
			return s;
		if (*s++ != '.')
			return NULL;
	}
}

static bool
parse_version(const char *text, int len, Version *v)
{
	const char *s = text;
	const char *end = text + len;

	memset(v, 0, sizeof(*v));
	for (int i = 0; i < 3; i++)
	{
		if (i > 0 && (s == end || *s++ != '.'))
			return false;
		v->core[i] = s;
		while (s < end && is_digit(*s))
			s++;
		v->core_len[i] = s - v->core[i];
		if (v->core_len[i] == 0 || (*v->core[i] == '0' && v->core_len[i] > 1))
			return false;
	}
	if (s < end && *s == '-')
	{
		v->pre = ++s;
		if ((s = scan_identifiers(s, end, '+', true)) == NULL)
			return false;
		v->pre_len = s - v->pre;
	}
	if (s < end && *s == '+')
		s = scan_identifiers(s + 1, end, '\0', false);
	return s == end;
}

/* Numbers of any length without leading zeros: the longer one is the greater. */
static int
compare_numbers(const char *a, int alen, const char *b, int blen)
{
	return alen != blen ? alen - blen : memcmp(a, b, alen);
}

static int
compare_identifiers(const char *a, int alen, const char *b, int blen)
{
	bool		anum = is_numeric(a, alen);
	bool		bnum = is_numeric(b, blen);
	int			diff;

	if (anum && bnum)
		return compare_numbers(a, alen, b, blen);
	if (anum != bnum)
		return anum ? -1 : 1;
	diff = memcmp(a, b, Min(alen, blen));
	return diff != 0 ? diff : alen - blen;
}

static int
compare_versions(const Version *a, const Version *b)
{
	const char *x = a->pre;
	const char *y = b->pre;

	for (int i = 0; i < 3; i++)
	{
		int			diff = compare_numbers(a->core[i], a->core_len[i], b->core[i], b->core_len[i]);

		if (diff != 0)
			return diff;
	}
	if (!x || !y)
		return x ? -1 : y ? 1 : 0;	/* a pre-release sorts before its release */
	for (;;)
	{
		const char *xend = x;
		const char *yend = y;
		int			diff;

		while (xend < a->pre + a->pre_len && *xend != '.')
			xend++;
		while (yend < b->pre + b->pre_len && *yend != '.')
			yend++;
		if ((diff = compare_identifiers(x, xend - x, y, yend - y)) != 0)
			return diff;
		if (xend == a->pre + a->pre_len || yend == b->pre + b->pre_len)
			return (xend != a->pre + a->pre_len) - (yend != b->pre + b->pre_len);
		x = xend + 1;
		y = yend + 1;
	}
}

bool
semver_is_valid(const char *text, int len)
{
	Version		v;

	return parse_version(text, len, &v);
}

/* A malformed minimum lets nobody in: an operator who set one did not mean "none". */
bool
semver_at_least_minimum(const char *text, int len)
{
	Version		minimum;
	Version		version;

	if (semver_minimum == NULL || semver_minimum[0] == '\0')
		return true;
	return parse_version(semver_minimum, strlen(semver_minimum), &minimum) && parse_version(text, len, &version) &&
		compare_versions(&version, &minimum) >= 0;
}

/* _semver_compare(a text, b text) int: -1, 0 or 1; NULL when one of them is malformed. */
Datum
synchro_semver_compare(PG_FUNCTION_ARGS)
{
	text	   *a = PG_GETARG_TEXT_PP(0);
	text	   *b = PG_GETARG_TEXT_PP(1);
	Version		x;
	Version		y;
	int			diff;

	if (!parse_version(VARDATA_ANY(a), VARSIZE_ANY_EXHDR(a), &x) || !parse_version(VARDATA_ANY(b), VARSIZE_ANY_EXHDR(b), &y))
		PG_RETURN_NULL();
	diff = compare_versions(&x, &y);
	PG_RETURN_INT32((diff > 0) - (diff < 0));
}
