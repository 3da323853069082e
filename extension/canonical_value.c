/*
 * canonical_value.c
 *		Datum -> portable value.
 */
#include "postgres.h"

#include <math.h>

#include "miscadmin.h"
#include "pgtime.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/bytea.h"
#include "utils/date.h"
#include "utils/datetime.h"
#include "utils/float.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

#include "canonical_codec.h"
#include "compat.h"

/*
 * Output functions read their settings from variables; setting those directly costs nothing, while set_config_option per value
 * would cost microseconds. The caller restores them on every way out (PG_FINALLY).
 */
void
syn_pin_output(SynOutputSettings *saved)
{
	static pg_tz *utc = NULL;

	if (!utc)
		utc = pg_tzset("UTC");	/* kept for the session */
	saved->date_style = DateStyle;
	saved->interval_style = IntervalStyle;
	saved->float_digits = extra_float_digits;
	saved->bytea_style = bytea_output;
	saved->timezone = session_timezone;
	DateStyle = USE_ISO_DATES;	/* DateOrder does not matter for it */
	IntervalStyle = INTSTYLE_POSTGRES;
	extra_float_digits = 1;
	bytea_output = BYTEA_OUTPUT_HEX;
	session_timezone = utc;
}

void
syn_unpin_output(const SynOutputSettings *saved)
{
	DateStyle = saved->date_style;
	IntervalStyle = saved->interval_style;
	extra_float_digits = saved->float_digits;
	bytea_output = saved->bytea_style;
	session_timezone = saved->timezone;
}

char *
syn_output(FmgrInfo *output, Datum datum)
{
	SynOutputSettings saved;
	char	   *volatile result = NULL;

	syn_pin_output(&saved);
	PG_TRY();
	{
		result = OutputFunctionCall(output, datum);
	}
	PG_FINALLY();
	{
		syn_unpin_output(&saved);
	}
	PG_END_TRY();
	return result;
}

/* n decimal digits, most significant first. */
static char *
put_digits(char *s, int value, int n)
{
	for (int i = n - 1; i >= 0; i--)
	{
		s[i] = '0' + value % 10;
		value /= 10;
	}
	return s + n;
}

static char *
put_date(char *s, int days)
{
	int			year,
				month,
				day;

	j2date(days + POSTGRES_EPOCH_JDATE, &year, &month, &day);
	s = put_digits(s, year, 4);
	*s++ = '-';
	s = put_digits(s, month, 2);
	*s++ = '-';
	return put_digits(s, day, 2);
}

static char *
put_time(char *s, int64 usecs)
{
	int			secs = usecs / USECS_PER_SEC;

	s = put_digits(s, secs / SECS_PER_HOUR, 2);
	*s++ = ':';
	s = put_digits(s, secs / SECS_PER_MINUTE % MINS_PER_HOUR, 2);
	*s++ = ':';
	s = put_digits(s, secs % SECS_PER_MINUTE, 2);
	*s++ = '.';
	return put_digits(s, usecs % USECS_PER_SEC, 6);
}

static bool
from_timestamp(Timestamp ts, SynValue *out)
{
	int64		day;
	int64		usecs;
	char	   *s = out->buf;

	if (ts < SYN_MIN_TIMESTAMP || ts > SYN_MAX_TIMESTAMP)
		return false;			/* infinities too */
	day = ts / USECS_PER_DAY;
	usecs = ts % USECS_PER_DAY;
	if (usecs < 0)
	{
		day--;
		usecs += USECS_PER_DAY;
	}
	s = put_date(s, (int) day);
	*s++ = 'T';
	s = put_time(s, usecs);
	*s++ = 'Z';
	out->data = out->buf;
	out->len = s - out->buf;
	return true;
}

/* numeric_out without trailing zeros behind the point. It prints no exponent and no -0. */
static bool
from_numeric(Datum datum, SynValue *out)
{
	Numeric		num = DatumGetNumeric(datum);
	char	   *str;
	int			len;

	if (numeric_is_nan(num) || numeric_is_inf(num))
		return false;
	str = DatumGetCString(DirectFunctionCall1(numeric_out, NumericGetDatum(num)));
	len = strlen(str);
	if (memchr(str, '.', len))
	{
		while (str[len - 1] == '0')
			len--;
		if (str[len - 1] == '.')
			len--;
	}
	out->data = str;
	out->len = len;
	return true;
}

static bool
from_float(double num, SynValue *out)
{
	if (!isfinite(num))
		return false;
	out->real = num == 0 ? 0 : num; /* -0 */
	return true;
}

static void
from_uuid(Datum datum, SynValue *out)
{
	/* 36 characters do not fit the inline buffer */
	out->data = DatumGetCString(DirectFunctionCall1(uuid_out, datum));
	out->len = 36;
}

/* JSON text of a json column, or of jsonb's own text form. */
static bool
from_json(const char *str, int len, SynValue *out)
{
	JcsError	error;
	JcsNode    *node = jcs_parse(str, len, JCS_SAFE_NUMBERS, &error);
	StringInfoData buf;

	if (!node)
		return false;
	initStringInfo(&buf);
	jcs_append(&buf, node);
	out->data = buf.data;
	out->len = buf.len;
	return true;
}

static bool
from_array(const SynCodec *codec, Datum datum, SynValue *out)
{
	StringInfoData buf;

	initStringInfo(&buf);
	if (!syn_array_json(codec, datum, &buf))
		return false;
	out->data = buf.data;
	out->len = buf.len;
	return true;
}

bool
syn_from_datum(const SynCodec *codec, Datum datum, SynValue *out)
{
	struct varlena *varlena;

	out->type = codec->key.type;
	out->isnull = false;
	switch (codec->method)
	{
		case SYN_M_INT2:
			out->num = DatumGetInt16(datum);
			return true;
		case SYN_M_INT4:
			out->num = DatumGetInt32(datum);
			return true;
		case SYN_M_INT8:
			out->num = DatumGetInt64(datum);
			return true;
		case SYN_M_BOOL:
			out->num = DatumGetBool(datum);
			return true;
		case SYN_M_NUMERIC:
			return from_numeric(datum, out);
		case SYN_M_FLOAT4:
			return from_float(DatumGetFloat4(datum), out);
		case SYN_M_FLOAT8:
			return from_float(DatumGetFloat8(datum), out);
		case SYN_M_TIMESTAMP:
			return from_timestamp(DatumGetTimestamp(datum), out);
		case SYN_M_DATE:
			if (DatumGetDateADT(datum) < SYN_MIN_DATE || DatumGetDateADT(datum) > SYN_MAX_DATE)
				return false;
			out->len = put_date(out->buf, DatumGetDateADT(datum)) - out->buf;
			out->data = out->buf;
			return true;
		case SYN_M_TIME:
			if (DatumGetTimeADT(datum) >= USECS_PER_DAY)
				return false;	/* 24:00:00 */
			out->len = put_time(out->buf, DatumGetTimeADT(datum)) - out->buf;
			out->data = out->buf;
			return true;
		case SYN_M_JSON:
			out->data = TextDatumGetCString(datum);
			return from_json(out->data, strlen(out->data), out);
		case SYN_M_JSONB:
			{
				StringInfoData buf;
				Jsonb	   *jsonb = DatumGetJsonbP(datum);

				initStringInfo(&buf);
				JsonbToCString(&buf, &jsonb->root, VARSIZE(jsonb));
				return from_json(buf.data, buf.len, out);
			}
		case SYN_M_UUID:
			from_uuid(datum, out);
			return true;
		case SYN_M_CHAR:
			if (IS_HIGHBIT_SET(DatumGetChar(datum)))
				return false;
			out->buf[0] = DatumGetChar(datum);
			out->data = out->buf;
			out->len = out->buf[0] ? 1 : 0;
			return true;
		case SYN_M_BYTEA:
		case SYN_M_TEXT:
			varlena = PG_DETOAST_DATUM_PACKED(datum);
			out->data = VARDATA_ANY(varlena);
			out->len = VARSIZE_ANY_EXHDR(varlena);
			return codec->method == SYN_M_BYTEA || syn_text_ok(out->data, out->len);
		case SYN_M_ARRAY:
			return from_array(codec, datum, out);
		case SYN_M_OUTPUT:
			out->data = syn_output(unconstify(FmgrInfo *, &codec->output), datum);
			out->len = strlen(out->data);
			return codec->ascii || syn_text_ok(out->data, out->len);
	}
	pg_unreachable();
}
