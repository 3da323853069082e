/*
 * mayread.c
 *		Gate of projection views. An evaluation passes it for every row and view: hence in C and without a SET clause.
 */
#include "postgres.h"

#include "catalog/pg_class.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/acl.h"

#include "errcodes.h"

PG_FUNCTION_INFO_V1(synchro_may_read);

/* _may_read(relation oid) boolean: true, or an error */
Datum
synchro_may_read(PG_FUNCTION_ARGS)
{
	if (pg_class_aclcheck(PG_GETARG_OID(0), GetUserId(), ACL_SELECT) != ACLCHECK_OK)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("a projection view needs SELECT on its source relation")));
	PG_RETURN_BOOL(true);
}
