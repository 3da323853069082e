/*
 * scopelock.c
 *		Locks of scopes that only this extension can take.
 *
 * Advisory locks are everybody's: any login could hold the ones of a scope and thereby stop its readers. These are locks on objects
 * of a class that is one of our tables, which no SQL command takes.
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "common/hashfn.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "compat.h"
#include "scopelock.h"

PG_FUNCTION_INFO_V1(synchro_lock_stage);

bool
syn_lock_scope(SynScopeLock purpose, uint32 key, bool wait)
{
	Oid			scopes = get_relname_relid("scope", get_namespace_oid("synchro", false));
	LOCKTAG		tag;

	if (!OidIsValid(scopes))
		elog(ERROR, "table synchro.scope is missing");
	SET_LOCKTAG_OBJECT(tag, MyDatabaseId, scopes, key, (uint16) purpose);
	return LockAcquire(&tag, ExclusiveLock, false, !wait) != LOCKACQUIRE_NOT_AVAIL;
}

/* _lock_stage(scope_id text, wait boolean) boolean: one session at a time stages a scope. */
Datum
synchro_lock_stage(PG_FUNCTION_ARGS)
{
	text	   *id = PG_GETARG_TEXT_PP(0);

	PG_RETURN_BOOL(syn_lock_scope(SYN_LOCK_STAGE, hash_bytes((const unsigned char *) VARDATA_ANY(id), VARSIZE_ANY_EXHDR(id)),
								  PG_GETARG_BOOL(1)));
}
