/*
 * credential.c - the login of the Go core, made and kept by the worker
 *
 * The password lives in shared memory and in the core, nowhere else: the catalog gets a SCRAM verifier, computed here, so that
 * no statement, log or extension that looks at statements ever sees it.  A role that we did not make is never touched.
 */
#include "postgres.h"

#include "compat.h"

#include "access/htup_details.h"
#include "catalog/pg_authid.h"
#include "commands/comment.h"
#include "commands/user.h"
#include "executor/spi.h"
#include "libpq/crypt.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "parser/parse_node.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/syscache.h"

#include "credential.h"
#include "errcodes.h"
#include "guc.h"

#define GROUP_ROLE "synchro_worker"
#define LOGIN_COMMENT "login of the synchro worker, made and kept by the extension"

void
synchro_login_name(char *name)
{
	if (synchro_worker_login[0])
		strlcpy(name, synchro_worker_login, NAMEDATALEN);
	else
		snprintf(name, NAMEDATALEN, "synchro_worker_%u", MyDatabaseId);
}

void
synchro_password(char *password)
{
	bool		random = true;

	LWLockAcquire(synchro_workers->lock, LW_EXCLUSIVE);
	if (!synchro_workers->has_password)
	{
		uint8		bytes[SYNCHRO_PASSWORD_LEN / 2];

		random = pg_strong_random(bytes, sizeof(bytes));
		for (int i = 0; random && i < lengthof(bytes); i++)
			snprintf(synchro_workers->password + 2 * i, 3, "%02x", bytes[i]);
		explicit_bzero(bytes, sizeof(bytes));
		synchro_workers->has_password = random;
	}
	memcpy(password, synchro_workers->password, SYNCHRO_PASSWORD_LEN + 1);
	LWLockRelease(synchro_workers->lock);
	if (!random)
		ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not make a random password")));
}

/* Runs a statement that has no secrets. */
static void
run(const char *sql)
{
	if (SPI_execute(sql, false, 0) < 0)
		elog(ERROR, "could not prepare the worker's login");
}

/* CREATE ROLE without a password, and our mark on it. */
static void
create_login(const char *login)
{
	const char *role = quote_identifier(login);

	run(psprintf("CREATE ROLE %s LOGIN REPLICATION NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS INHERIT IN ROLE %s",
				 role, GROUP_ROLE));
	run(psprintf("COMMENT ON ROLE %s IS %s", role, quote_literal_cstr(LOGIN_COMMENT)));
	CommandCounterIncrement();
}

pg_noreturn static void
refuse(const char *login, const char *why)
{
	ereport(ERROR,
			(errcode(SYNCHRO_ERR_INVALID_CONFIGURATION),
			 errmsg("role \"%s\" can not be the worker's login: %s", login, why),
			 errhint("Drop or rename the role, or set synchro.worker_login or synchro.worker_conninfo.")));
}

/* Refuses a role that we did not make, or that somebody has made powerful since. */
static void
check_login(const char *login, Oid role, Form_pg_authid form)
{
	if (!is_member_of_role_nosuper(role, get_role_oid(GROUP_ROLE, false)) ||
		SPI_execute(psprintf("SELECT FROM pg_catalog.pg_shdescription WHERE objoid OPERATOR(pg_catalog.=) %u"
							 " AND classoid OPERATOR(pg_catalog.=) %u AND description OPERATOR(pg_catalog.=) %s",
							 role, AuthIdRelationId, quote_literal_cstr(LOGIN_COMMENT)), false, 1) != SPI_OK_SELECT ||
		SPI_processed != 1)
		refuse(login, "it exists and was not made by the worker");
	if (form->rolsuper || form->rolcreaterole || form->rolcreatedb || form->rolbypassrls)
		refuse(login, "it has more rights than the worker may have");
	if (!form->rolcanlogin || !form->rolreplication)
		refuse(login, "it lacks LOGIN or REPLICATION");
}

/* Does the catalog's verifier accept the password? */
static bool
verifies(const char *login, HeapTuple tuple, const char *password)
{
	const char *logdetail = NULL;
	bool		isnull;
	Datum		verifier = SysCacheGetAttr(AUTHOID, tuple, Anum_pg_authid_rolpassword, &isnull);

	return !isnull && plain_crypt_verify(login, TextDatumGetCString(verifier), password, &logdetail) == STATUS_OK;
}

/* ALTER ROLE ... PASSWORD with a verifier, not through a statement: statements get logged and counted. */
static void
store_verifier(const char *login, const char *password)
{
	AlterRoleStmt *stmt = makeNode(AlterRoleStmt);
	ParseState *pstate = make_parsestate(NULL);
	char	   *verifier = encrypt_password(PASSWORD_TYPE_SCRAM_SHA_256, login, password);

	stmt->role = makeNode(RoleSpec);
	stmt->role->roletype = ROLESPEC_CSTRING;
	stmt->role->rolename = pstrdup(login);
	stmt->role->location = -1;
	stmt->action = +1;
	stmt->options = list_make1(makeDefElem("password", (Node *) makeString(verifier), -1));
	AlterRole(pstate, stmt);
	free_parsestate(pstate);
}

void
synchro_prepare_login(const char *login, const char *password)
{
	HeapTuple	tuple;

	/* Workers of several databases may share a login; and nobody waits for a standby on our behalf. */
	LockSharedObject(AuthIdRelationId, get_role_oid(GROUP_ROLE, false), 0, ShareUpdateExclusiveLock);
	(void) set_config_option("synchronous_commit", "local", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0, false);
	SPI_connect();
	if (!OidIsValid(get_role_oid(login, true)))
		create_login(login);

	tuple = SearchSysCache1(AUTHOID, ObjectIdGetDatum(get_role_oid(login, false)));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "login role of the worker has vanished");
	check_login(login, ((Form_pg_authid) GETSTRUCT(tuple))->oid, (Form_pg_authid) GETSTRUCT(tuple));
	if (!verifies(login, tuple, password))
		store_verifier(login, password);
	ReleaseSysCache(tuple);
	SPI_finish();
}
