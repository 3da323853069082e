/*
 * jcs.c
 *		Strict parser for I-JSON text.
 */
#include "postgres.h"

#include <math.h>

#include "mb/pg_wchar.h"

#include "jcs.h"

typedef struct JcsParser
{
	const char *pos;
	const char *end;			/* *end is NUL, so one octet of look-ahead is always safe */
	int			flags;
	int			depth;
	JcsError	error;
} JcsParser;

static JcsNode *parse_value(JcsParser *p);

/* Reasons for messages. */
const char *
jcs_error_text(JcsError error)
{
	static const char *const text[] = {
		[JCS_OK] = "no error",
		[JCS_BAD_SYNTAX] = "malformed JSON",
		[JCS_BAD_STRING] = "a string with U+0000, a lone surrogate or a noncharacter",
		[JCS_BAD_NUMBER] = "a number outside the portable range",
		[JCS_DUPLICATE] = "a repeated member name",
		[JCS_TOO_DEEP] = "arrays or objects nested too deeply",
	};

	return text[error];
}

/* Notes the first refusal. */
static bool
refuse(JcsParser *p, JcsError error)
{
	if (p->error == JCS_OK)
		p->error = error;
	return false;
}

static JcsNode *
fail(JcsParser *p, JcsError error)
{
	refuse(p, error);
	return NULL;
}

static void
skip_space(JcsParser *p)
{
	while (*p->pos == ' ' || *p->pos == '\t' || *p->pos == '\n' || *p->pos == '\r')
		p->pos++;
}

static JcsNode *
new_node(JcsKind kind, const char *raw)
{
	JcsNode    *node = palloc0(sizeof(JcsNode));

	node->kind = kind;
	node->raw = raw;
	return node;
}

/* Four hex digits at the position, or -1. */
static int
hex4(JcsParser *p)
{
	int			value = 0;

	for (int i = 0; i < 4; i++)
	{
		char		c = p->pos[i];

		if (c >= '0' && c <= '9')
			value = value * 16 + (c - '0');
		else if (c >= 'a' && c <= 'f')
			value = value * 16 + (c - 'a' + 10);
		else if (c >= 'A' && c <= 'F')
			value = value * 16 + (c - 'A' + 10);
		else
			return -1;			/* also the NUL at the end */
	}
	p->pos += 4;
	return value;
}

/* One escape, the position being behind the backslash. */
static bool
parse_escape(JcsParser *p, StringInfo out)
{
	static const char from[] = "\"\\/bfnrt";
	static const char to[] = "\"\\/\b\f\n\r\t";
	const char *simple;
	char		c = *p->pos++;
	int			code;
	unsigned char utf8[4];

	if (c != 'u')
	{
		simple = c ? strchr(from, c) : NULL;
		if (!simple)
			return refuse(p, JCS_BAD_SYNTAX);
		appendStringInfoCharMacro(out, to[simple - from]);
		return true;
	}

	code = hex4(p);
	if (code < 0)
		return refuse(p, JCS_BAD_SYNTAX);
	if (code == 0 || (code >= 0xDC00 && code <= 0xDFFF))
		return refuse(p, JCS_BAD_STRING);
	if (code >= 0xD800 && code <= 0xDBFF)
	{
		int			low;

		if (p->pos[0] != '\\' || p->pos[1] != 'u')
			return refuse(p, JCS_BAD_STRING);
		p->pos += 2;
		low = hex4(p);
		if (low < 0xDC00 || low > 0xDFFF)
			return refuse(p, low < 0 ? JCS_BAD_SYNTAX : JCS_BAD_STRING);
		code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
	}
	unicode_to_utf8(code, utf8);
	appendBinaryStringInfo(out, (char *) utf8, pg_utf_mblen(utf8));
	return true;
}

/* A string, the position being at its opening quote. Without escapes the result points into the text. */
static bool
parse_string(JcsParser *p, const char **str, int *len)
{
	const char *start = ++p->pos;
	StringInfoData out;

	while (*p->pos != '"' && *p->pos != '\\' && (unsigned char) *p->pos >= 0x20)
		p->pos++;
	if (*p->pos == '"')
	{
		*str = start;
		*len = p->pos - start;
	}
	else
	{
		initStringInfo(&out);
		appendBinaryStringInfo(&out, start, p->pos - start);
		while (*p->pos != '"')
		{
			if (*p->pos == '\\')
			{
				p->pos++;
				if (!parse_escape(p, &out))
					return false;
				continue;
			}
			if ((unsigned char) *p->pos < 0x20)
				return refuse(p, JCS_BAD_SYNTAX);
			start = p->pos;
			while (*p->pos != '"' && *p->pos != '\\' && (unsigned char) *p->pos >= 0x20)
				p->pos++;
			appendBinaryStringInfo(&out, start, p->pos - start);
		}
		*str = out.data;
		*len = out.len;
	}
	p->pos++;
	if (!syn_text_ok(*str, *len))
		return refuse(p, JCS_BAD_STRING);
	return true;
}

static JcsNode *
parse_number(JcsParser *p)
{
	JcsNode    *node = new_node(JCS_NUMBER, p->pos);
	bool		plain = true;
	char	   *stop;

	if (*p->pos == '-')
		p->pos++;
	if (*p->pos == '0')
		p->pos++;
	else if (*p->pos >= '1' && *p->pos <= '9')
		while (*p->pos >= '0' && *p->pos <= '9')
			p->pos++;
	else
		return fail(p, JCS_BAD_SYNTAX);
	if (*p->pos == '.')
	{
		plain = false;
		p->pos++;
		if (!(*p->pos >= '0' && *p->pos <= '9'))
			return fail(p, JCS_BAD_SYNTAX);
		while (*p->pos >= '0' && *p->pos <= '9')
			p->pos++;
	}
	if (*p->pos == 'e' || *p->pos == 'E')
	{
		plain = false;
		p->pos++;
		if (*p->pos == '+' || *p->pos == '-')
			p->pos++;
		if (!(*p->pos >= '0' && *p->pos <= '9'))
			return fail(p, JCS_BAD_SYNTAX);
		while (*p->pos >= '0' && *p->pos <= '9')
			p->pos++;
	}
	node->rawlen = p->pos - node->raw;

	if (plain && node->rawlen <= 15)
		node->u.num = (double) strtol(node->raw, NULL, 10);
	else
		node->u.num = strtod(node->raw, &stop);
	if (isinf(node->u.num))
		return fail(p, JCS_BAD_NUMBER);
	if ((p->flags & JCS_SAFE_NUMBERS) && fabs(node->u.num) > JCS_MAX_SAFE)
		return fail(p, JCS_BAD_NUMBER);
	return node;
}

/* Appends to a growing array of fixed-size elements. */
static void *
grow(void *array, int count, Size size)
{
	if (count == 0)
		return palloc(4 * size);
	if (count >= 4 && (count & (count - 1)) == 0)
		return repalloc(array, (Size) count * 2 * size);
	return array;
}

static JcsNode *
parse_array(JcsParser *p)
{
	JcsNode    *node = new_node(JCS_ARRAY, p->pos++);

	skip_space(p);
	if (*p->pos == ']')
		p->pos++;
	else
	{
		for (;;)
		{
			JcsNode    *item = parse_value(p);

			if (!item)
				return NULL;
			node->u.items = grow(node->u.items, node->len, sizeof(JcsNode *));
			node->u.items[node->len++] = item;
			skip_space(p);
			if (*p->pos == ']')
				break;
			if (*p->pos != ',')
				return fail(p, JCS_BAD_SYNTAX);
			p->pos++;
		}
		p->pos++;
	}
	node->rawlen = p->pos - node->raw;
	return node;
}

/*
 * Order of UTF-16 code units, on UTF-8: octet order, except that code points beyond the BMP (first octet F0 and above, surrogates
 * in UTF-16) come before U+E000..U+FFFF (first octet EE, EF).
 */
static int
compare_utf16(const char *a, int alen, const char *b, int blen)
{
	int			n = Min(alen, blen);

	for (int i = 0; i < n; i++)
	{
		unsigned char x = (unsigned char) a[i];
		unsigned char y = (unsigned char) b[i];

		if (x != y)
		{
			if (x >= 0xEE && y >= 0xEE && (x >= 0xF0) != (y >= 0xF0))
				return x >= 0xF0 ? -1 : 1;
			return x < y ? -1 : 1;
		}
	}
	return alen - blen;
}

static int
compare_members(const void *a, const void *b)
{
	const JcsMember *x = a;
	const JcsMember *y = b;

	return compare_utf16(x->name, x->namelen, y->name, y->namelen);
}

static JcsNode *
parse_object(JcsParser *p)
{
	JcsNode    *node = new_node(JCS_OBJECT, p->pos++);

	skip_space(p);
	if (*p->pos == '}')
		p->pos++;
	else
	{
		for (;;)
		{
			JcsMember	member;

			skip_space(p);
			if (*p->pos != '"')
				return fail(p, JCS_BAD_SYNTAX);
			if (!parse_string(p, &member.name, &member.namelen))
				return NULL;
			skip_space(p);
			if (*p->pos != ':')
				return fail(p, JCS_BAD_SYNTAX);
			p->pos++;
			member.value = parse_value(p);
			if (!member.value)
				return NULL;
			node->u.members = grow(node->u.members, node->len, sizeof(JcsMember));
			node->u.members[node->len++] = member;
			skip_space(p);
			if (*p->pos == '}')
				break;
			if (*p->pos != ',')
				return fail(p, JCS_BAD_SYNTAX);
			p->pos++;
		}
		p->pos++;
		qsort(node->u.members, node->len, sizeof(JcsMember), compare_members);
		for (int i = 1; i < node->len; i++)
			if (compare_members(&node->u.members[i - 1], &node->u.members[i]) == 0)
				return fail(p, JCS_DUPLICATE);
	}
	node->rawlen = p->pos - node->raw;
	return node;
}

static JcsNode *
parse_literal(JcsParser *p, const char *word, JcsKind kind)
{
	size_t		len = strlen(word);
	JcsNode    *node;

	if (strncmp(p->pos, word, len) != 0)
		return fail(p, JCS_BAD_SYNTAX);
	node = new_node(kind, p->pos);
	node->rawlen = len;
	p->pos += len;
	return node;
}

static JcsNode *
parse_value(JcsParser *p)
{
	JcsNode    *node;

	skip_space(p);
	switch (*p->pos)
	{
		case '{':
		case '[':
			if (++p->depth > JCS_MAX_DEPTH)
				return fail(p, JCS_TOO_DEEP);
			node = *p->pos == '{' ? parse_object(p) : parse_array(p);
			p->depth--;
			return node;
		case '"':
			node = new_node(JCS_STRING, p->pos);
			if (!parse_string(p, &node->u.str, &node->len))
				return NULL;
			node->rawlen = p->pos - node->raw;
			return node;
		case 't':
			return parse_literal(p, "true", JCS_TRUE);
		case 'f':
			return parse_literal(p, "false", JCS_FALSE);
		case 'n':
			return parse_literal(p, "null", JCS_NULL);
		default:
			return parse_number(p);
	}
}

JcsNode *
jcs_parse(const char *text, int len, int flags, JcsError *error)
{
	JcsParser	p = {.pos = text, .end = text + len, .flags = flags};
	JcsNode    *node = parse_value(&p);

	if (node)
	{
		skip_space(&p);
		/* a NUL octet inside the text stops the parser early, so it is refused here as well */
		if (p.pos != p.end)
			node = fail(&p, JCS_BAD_SYNTAX);
	}
	*error = node ? JCS_OK : p.error;
	return node;
}
