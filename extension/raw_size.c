/*
 * raw_size.c
 *		Octets of a value as it would be uncompressed, without fetching it: what decides how many rows a page takes.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "fmgr.h"
#include "utils/lsyscache.h"

PG_FUNCTION_INFO_V1(synchro_raw_size);

/* _raw_size(value "any") bigint; 0 for NULL. */
Datum
synchro_raw_size(PG_FUNCTION_ARGS)
{
	Oid			type = get_fn_expr_argtype(fcinfo->flinfo, 0);
	int16		len;

	if (PG_ARGISNULL(0))
		PG_RETURN_INT64(0);
	len = get_typlen(type);
	PG_RETURN_INT64(len == -1 ? (int64) toast_raw_datum_size(PG_GETARG_DATUM(0)) : Max(len, 0));
}
