/*
 * evalerror.c
 *		Errors of evaluations: what failed and why, but no value and no text that an application wrote.
 */
#include "postgres.h"

#include "errcodes.h"
#include "seceval.h"

void
syn_evaluation_failed(int sqlstate, const char *reason)
{
	ereport(ERROR, (errcode(sqlstate), errmsg("scope evaluation failed: %s", reason)));
	pg_unreachable();
}

/* Conditions of the server or of the moment: another attempt may succeed. */
static bool
is_transient(int sqlstate)
{
	switch (ERRCODE_TO_CATEGORY(sqlstate))
	{
		case ERRCODE_TRANSACTION_ROLLBACK:
		case ERRCODE_INSUFFICIENT_RESOURCES:
		case ERRCODE_OPERATOR_INTERVENTION:
		case ERRCODE_SYSTEM_ERROR:
			return true;
		default:
			return sqlstate == ERRCODE_LOCK_NOT_AVAILABLE;
	}
}

bool
syn_is_function_error(int sqlstate, int failure)
{
	return sqlstate != failure && !is_transient(sqlstate);
}

void
syn_function_failed(int failure, const char *reason)
{
	int			sqlstate = geterrcode();

	if (!syn_is_function_error(sqlstate, failure))
		PG_RE_THROW();
	FlushErrorState();
	ereport(ERROR,
			(errcode(failure),
			 errmsg("scope evaluation failed: %s", reason),
			 errdetail("SQLSTATE %s", unpack_sql_state(sqlstate))));
	pg_unreachable();
}
