/*
 * jcs_write.c
 *		RFC 8785 text, access to parsed nodes, and the SQL functions over them.
 */
#include "postgres.h"

#include <math.h>

#include "fmgr.h"
#include "utils/builtins.h"

#include "errcodes.h"
#include "jcs.h"

JcsNode *
jcs_member(const JcsNode *object, const char *name)
{
	size_t		len = strlen(name);

	for (int i = 0; i < object->len; i++)
	{
		const JcsMember *m = &object->u.members[i];

		if ((size_t) m->namelen == len && memcmp(m->name, name, len) == 0)
			return m->value;
	}
	return NULL;
}

bool
jcs_shape(const JcsNode *object, const char *const *names, int required, int total, JcsNode **out)
{
	int			found = 0;

	if (!object || object->kind != JCS_OBJECT)
		return false;
	for (int i = 0; i < total; i++)
	{
		out[i] = jcs_member(object, names[i]);
		if (out[i])
			found++;
		else if (i < required)
			return false;
	}
	return found == object->len;	/* names are unique on both sides */
}

bool
jcs_string_is(const JcsNode *node, const char *text)
{
	return node && node->kind == JCS_STRING && (size_t) node->len == strlen(text) &&
		memcmp(node->u.str, text, node->len) == 0;
}

char *
jcs_string_dup(const JcsNode *node)
{
	return pnstrdup(node->u.str, node->len);
}

bool
jcs_integer(const JcsNode *node, int64 *value)
{
	if (!node || node->kind != JCS_NUMBER || fabs(node->u.num) > JCS_MAX_SAFE)
		return false;
	for (int i = 0; i < node->rawlen; i++)
		if (node->raw[i] == '.' || node->raw[i] == 'e' || node->raw[i] == 'E')
			return false;
	*value = (int64) node->u.num;
	return !(node->raw[0] == '-' && *value == 0);
}

void
jcs_append_string(StringInfo out, const char *str, int len)
{
	static const char hex[] = "0123456789abcdef";
	const char *end = str + len;

	appendStringInfoCharMacro(out, '"');
	while (str < end)
	{
		const char *start = str;
		char		c;

		while (str < end && (unsigned char) *str >= 0x20 && *str != '"' && *str != '\\')
			str++;
		if (str > start)
			appendBinaryStringInfo(out, start, str - start);
		if (str == end)
			break;
		c = *str++;
		appendStringInfoCharMacro(out, '\\');
		switch (c)
		{
			case '"':
			case '\\':
				appendStringInfoCharMacro(out, c);
				break;
			case '\b':
				appendStringInfoCharMacro(out, 'b');
				break;
			case '\f':
				appendStringInfoCharMacro(out, 'f');
				break;
			case '\n':
				appendStringInfoCharMacro(out, 'n');
				break;
			case '\r':
				appendStringInfoCharMacro(out, 'r');
				break;
			case '\t':
				appendStringInfoCharMacro(out, 't');
				break;
			default:
				appendStringInfoString(out, "u00");
				appendStringInfoCharMacro(out, hex[c >> 4]);
				appendStringInfoCharMacro(out, hex[c & 15]);
		}
	}
	appendStringInfoCharMacro(out, '"');
}

void
jcs_append(StringInfo out, const JcsNode *node)
{
	switch (node->kind)
	{
		case JCS_NULL:
			appendStringInfoString(out, "null");
			break;
		case JCS_FALSE:
			appendStringInfoString(out, "false");
			break;
		case JCS_TRUE:
			appendStringInfoString(out, "true");
			break;
		case JCS_NUMBER:
			jcs_append_number(out, node->u.num);
			break;
		case JCS_STRING:
			jcs_append_string(out, node->u.str, node->len);
			break;
		case JCS_ARRAY:
			appendStringInfoCharMacro(out, '[');
			for (int i = 0; i < node->len; i++)
			{
				if (i > 0)
					appendStringInfoCharMacro(out, ',');
				jcs_append(out, node->u.items[i]);
			}
			appendStringInfoCharMacro(out, ']');
			break;
		case JCS_OBJECT:
			appendStringInfoCharMacro(out, '{');
			for (int i = 0; i < node->len; i++)
			{
				if (i > 0)
					appendStringInfoCharMacro(out, ',');
				jcs_append_string(out, node->u.members[i].name, node->u.members[i].namelen);
				appendStringInfoCharMacro(out, ':');
				jcs_append(out, node->u.members[i].value);
			}
			appendStringInfoCharMacro(out, '}');
			break;
	}
}

/* Parses a json or text argument or raises invalid_request. */
static JcsNode *
parse_argument(text *arg)
{
	JcsError	error;
	char	   *str = text_to_cstring(arg);
	JcsNode    *node = jcs_parse(str, strlen(str), 0, &error);

	if (!node)
		ereport(ERROR,
				(errcode(SYNCHRO_ERR_INVALID_REQUEST),
				 errmsg("JSON text is not strict I-JSON"),
				 errdetail("Found %s.", jcs_error_text(error))));
	return node;
}

PG_FUNCTION_INFO_V1(synchro_json_strict);
Datum
synchro_json_strict(PG_FUNCTION_ARGS)
{
	parse_argument(PG_GETARG_TEXT_PP(0));
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(synchro_jcs);
Datum
synchro_jcs(PG_FUNCTION_ARGS)
{
	JcsNode    *node = parse_argument(PG_GETARG_TEXT_PP(0));
	StringInfoData out;

	initStringInfo(&out);
	jcs_append(&out, node);
	PG_RETURN_TEXT_P(cstring_to_text_with_len(out.data, out.len));
}
