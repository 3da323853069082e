/*
 * funccheck_calls.c
 *		Which built-in functions a membership, impact or assignment function may call.
 *
 * Immutable ones. Of the stable ones only those listed here: their results depend on their arguments and on settings that restricted.c
 * pins (formats, time zone, locale), or on catalogs of user-defined types. Every other stable function is refused, also one that a later
 * PostgreSQL brings: they know the time, the session, the user, privileges, the server's state or tables by name. So are the input
 * functions of dates and times, which understand 'now', and whatever calls input functions of other types by name (arrays, records,
 * ranges, json_populate_record). Volatile functions are refused.
 */
#include "postgres.h"

#include "access/transam.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_proc.h"
#include "utils/lsyscache.h"

#include "funccheck.h"

/* By OID, ascending: built-in functions keep theirs in every PostgreSQL. */
static const Oid stable_functions[] = {
	384, 395,	/* array_to_string */
	751,	/* array_out */
	939,	/* generate_series */
	1085,	/* date_out */
	1151,	/* timestamptz_out */
	1160,	/* interval_in */
	1161,	/* interval_out */
	1171,	/* date_part */
	1174, 1176,	/* timestamptz */
	1177,	/* jsonb_path_exists_tz */
	1178,	/* date */
	1179,	/* jsonb_path_query_tz */
	1180,	/* jsonb_path_query_array_tz */
	1189,	/* timestamptz_pl_interval */
	1190,	/* timestamptz_mi_interval */
	1217, 1284,	/* date_trunc */
	1285,	/* quote_literal */
	1290,	/* quote_nullable */
	1305, 1306, 1307,	/* overlaps */
	1313,	/* timestamp_out */
	1713,	/* length */
	1714,	/* convert_from */
	1717,	/* convert_to */
	1768, 1770, 1772, 1773, 1774, 1775, 1776,	/* to_char */
	1777,	/* to_number */
	1778,	/* to_timestamp */
	1780,	/* to_date */
	1813,	/* convert */
	2003,	/* textanycat */
	2004,	/* anytextcat */
	2019,	/* time */
	2023,	/* jsonb_path_query_first_tz */
	2027,	/* timestamp */
	2028,	/* timestamptz */
	2030,	/* jsonb_path_match_tz */
	2049,	/* to_char */
	2291,	/* record_out */
	2297,	/* anyarray_out */
	2351, 2352, 2353, 2354, 2355, 2356, 2357,	/* date against timestamptz */
	2377, 2378, 2379, 2380, 2381, 2382, 2383,	/* timestamptz against date */
	2520, 2521, 2522, 2523, 2524, 2525, 2526,	/* timestamp against timestamptz */
	2527, 2528, 2529, 2530, 2531, 2532, 2533,	/* timestamptz against timestamp */
	2549,	/* interval_pl_timestamptz */
	3058,	/* concat */
	3059,	/* concat_ws */
	3153, 3154,	/* array_to_json */
	3155, 3156,	/* row_to_json */
	3173,	/* json_agg_transfn */
	3175,	/* json_agg */
	3176,	/* to_json */
	3180,	/* json_object_agg_transfn */
	3197,	/* json_object_agg */
	3198, 3199,	/* json_build_array */
	3200, 3201,	/* json_build_object */
	3265,	/* jsonb_agg_transfn */
	3266,	/* jsonb_agg_finalfn */
	3267,	/* jsonb_agg */
	3268,	/* jsonb_object_agg_transfn */
	3269,	/* jsonb_object_agg_finalfn */
	3271, 3272,	/* jsonb_build_array */
	3273, 3274,	/* jsonb_build_object */
	3462, 3463,	/* make_timestamptz */
	3505,	/* anyenum_out */
	3506,	/* enum_in */
	3507,	/* enum_out */
	3528,	/* enum_first */
	3529,	/* enum_last */
	3530, 3531,	/* enum_range */
	3539, 3540,	/* format */
	3787,	/* to_jsonb */
	3835,	/* range_out */
	4135,	/* in_range */
	4232,	/* multirange_out */
	6203,	/* extract */
};

static int
compare_oids(const void *a, const void *b)
{
	Oid			left = *(const Oid *) a;
	Oid			right = *(const Oid *) b;

	return (left > right) - (left < right);
}

const char *
funccheck_call(Oid function)
{
	if (function >= FirstUnpinnedObjectId || get_func_namespace(function) != PG_CATALOG_NAMESPACE)
		return "it calls a function that is not built in";
	switch (func_volatile(function))
	{
		case PROVOLATILE_IMMUTABLE:
			return NULL;
		case PROVOLATILE_STABLE:
			if (bsearch(&function, stable_functions, lengthof(stable_functions), sizeof(Oid), compare_oids))
				return NULL;
			return "it calls a function that depends on the time, the session, settings or the catalog";
		default:
			return "it calls a volatile function";
	}
}
