/*
 * identity.c
 *		What a stream position belongs to: this system, timeline and database.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xlog.h"
#include "funcapi.h"
#include "miscadmin.h"

PG_FUNCTION_INFO_V1(synchro_stream_identity);

/* _stream_identity(): (system_identifier, timeline, database_oid); timeline 0 in recovery. Reads shared memory only. */
Datum
synchro_stream_identity(PG_FUNCTION_ARGS)
{
	TupleDesc	desc;
	Datum		values[3];
	bool		nulls[3] = {false, false, false};

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	values[0] = Int64GetDatum((int64) GetSystemIdentifier());
	values[1] = Int32GetDatum(RecoveryInProgress() ? 0 : (int32) GetWALInsertionTimeLine());
	values[2] = ObjectIdGetDatum(MyDatabaseId);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}
