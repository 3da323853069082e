/*
 * canonical_array.c
 *		One-dimensional arrays as JSON arrays of portable elements, and back.
 */
#include "postgres.h"

#include <math.h>

#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "canonical_codec.h"

bool
syn_array_json(const SynCodec *codec, Datum datum, StringInfo out)
{
	ArrayType  *array = DatumGetArrayTypeP(datum);
	Datum	   *elems;
	bool	   *nulls;
	int			nelems;

	if (ARR_NDIM(array) > 1 || (ARR_NDIM(array) == 1 && ARR_LBOUND(array)[0] != 1))
		return false;

	deconstruct_array(array, codec->elemtype, codec->elemlen, codec->elembyval, codec->elemalign,
					  &elems, &nulls, &nelems);
	appendStringInfoCharMacro(out, '[');
	for (int i = 0; i < nelems; i++)
	{
		SynValue	value;

		if (i > 0)
			appendStringInfoCharMacro(out, ',');
		if (nulls[i])
		{
			appendStringInfoString(out, "null");
			continue;
		}
		if (!syn_from_datum(codec->element, elems[i], &value))
			return false;
		/* inside JSON a number keeps to JSON's rule */
		if (value.type == SYN_FLOAT && fabs(value.real) > JCS_MAX_SAFE)
			return false;
		syn_append_json(out, &value);
	}
	appendStringInfoCharMacro(out, ']');
	return true;
}

bool
syn_array_literal(Oid array_type, const JcsNode *node, StringInfo out)
{
	Oid			element = getBaseType(get_element_type(getBaseType(array_type)));
	char		delimiter;
	int16		typlen;
	bool		typbyval;
	char		typalign;
	Oid			ioparam;
	Oid			input;
	SynType		type;

	if (node->kind != JCS_ARRAY || !syn_portable_type(element, false, &type))
		return false;
	get_type_io_data(element, IOFunc_input, &typlen, &typbyval, &typalign, &delimiter, &ioparam, &input);

	appendStringInfoCharMacro(out, '{');
	for (int i = 0; i < node->len; i++)
	{
		char	   *text;

		if (i > 0)
			appendStringInfoCharMacro(out, delimiter);
		if (!syn_wire_to_text(type, element, -1, node->u.items[i], &text))
			return false;
		if (!text)
		{
			appendStringInfoString(out, "NULL");
			continue;
		}
		/* quoted, an element never reads as NULL */
		appendStringInfoCharMacro(out, '"');
		for (; *text; text++)
		{
			if (*text == '"' || *text == '\\')
				appendStringInfoCharMacro(out, '\\');
			appendStringInfoCharMacro(out, *text);
		}
		appendStringInfoCharMacro(out, '"');
	}
	appendStringInfoCharMacro(out, '}');
	return true;
}
