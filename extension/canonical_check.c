/*
 * canonical_check.c
 *		Has a value a portable form? Asked by the fence for every synced column of every written row.
 */
#include "postgres.h"

#include "compat.h"

#include <math.h>

#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"

#include "canonical_codec.h"
#include "errcodes.h"

bool
syn_codec_check(const SynCodec *codec, Datum datum)
{
	static MemoryContext work = NULL;
	MemoryContext caller;
	SynValue	value;
	bool		ok;

	switch (codec->method)
	{
		case SYN_M_INT2:
		case SYN_M_INT4:
		case SYN_M_INT8:
		case SYN_M_BOOL:
		case SYN_M_UUID:
		case SYN_M_BYTEA:
			return true;
		case SYN_M_FLOAT4:
			return isfinite(DatumGetFloat4(datum));
		case SYN_M_FLOAT8:
			return isfinite(DatumGetFloat8(datum));
		case SYN_M_TIMESTAMP:
			return DatumGetTimestamp(datum) >= SYN_MIN_TIMESTAMP && DatumGetTimestamp(datum) <= SYN_MAX_TIMESTAMP;
		case SYN_M_DATE:
			return DatumGetDateADT(datum) >= SYN_MIN_DATE && DatumGetDateADT(datum) <= SYN_MAX_DATE;
		case SYN_M_TIME:
			return DatumGetTimeADT(datum) < USECS_PER_DAY;
		case SYN_M_CHAR:
			return !IS_HIGHBIT_SET(DatumGetChar(datum));
		case SYN_M_TEXT:
			{
				struct varlena *raw = (struct varlena *) DatumGetPointer(datum);

				if (!VARATT_IS_EXTENDED(raw) || VARATT_IS_SHORT(raw))
					return syn_text_ok(VARDATA_ANY(raw), VARSIZE_ANY_EXHDR(raw));
				break;
			}
		case SYN_M_OUTPUT:
			if (codec->ascii)
				return true;
			break;
		default:
			break;
	}

	/* The others need memory. It is given back here, because the caller may check many rows in one context. */
	if (!work)
		work = AllocSetContextCreate(TopMemoryContext, "synchro value check", ALLOCSET_DEFAULT_SIZES);
	MemoryContextReset(work);	/* an error may have left something */
	caller = MemoryContextSwitchTo(work);
	if (codec->method == SYN_M_NUMERIC)
	{
		Numeric		num = DatumGetNumeric(datum);

		ok = !numeric_is_nan(num) && !numeric_is_inf(num);
	}
	else
		ok = syn_from_datum(codec, datum, &value);
	MemoryContextSwitchTo(caller);
	MemoryContextReset(work);
	return ok;
}

bool
syn_value_check(Oid typid, SynType type, bool as_text, Datum datum)
{
	const SynCodec *codec = syn_codec(typid, type, as_text);

	return codec && syn_codec_check(codec, datum);
}

PG_FUNCTION_INFO_V1(synchro_representable);
Datum
synchro_representable(PG_FUNCTION_ARGS)
{
	Oid			typid = PG_GETARG_OID(0);
	bool		as_text = PG_GETARG_BOOL(1);
	SynType		type;

	if (PG_ARGISNULL(2))
		PG_RETURN_BOOL(true);
	/* the datum is read as this type: never trust the argument alone */
	if (getBaseType(get_fn_expr_argtype(fcinfo->flinfo, 2)) != getBaseType(typid))
		ereport(ERROR,
				(errcode(SYNCHRO_ERR_INVALID_PARAMETER),
				 errmsg("type of the value differs from the given type")));
	if (!syn_portable_type(typid, as_text, &type))
		PG_RETURN_BOOL(false);
	PG_RETURN_BOOL(syn_value_check(typid, type, as_text, PG_GETARG_DATUM(2)));
}
