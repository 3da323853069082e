/*
 * worker_catalog.c - what the worker reads and writes in the catalogs
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_database.h"
#include "commands/extension.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "credential.h"
#include "worker_catalog.h"

void
synchro_catalog_session(void)
{
	static const struct
	{
		const char *name;
		const char *value;
	}			settings[] =
	{
		{"search_path", "pg_catalog, pg_temp"},
		{"default_transaction_isolation", "read committed"},
		{"default_transaction_read_only", "off"},
		{"statement_timeout", "0"},
		{"idle_in_transaction_session_timeout", "0"},
#if PG_VERSION_NUM >= 170000
		{"transaction_timeout", "0"},
#endif
		/* a lock that somebody holds for long must not keep us from stopping */
		{"lock_timeout", "500ms"},
	};

	for (int i = 0; i < lengthof(settings); i++)
		SetConfigOption(settings[i].name, settings[i].value, PGC_SUSET, PGC_S_OVERRIDE);
}

/* Runs fn in a transaction; false when it fails, with the error in *error. Results go to the caller's memory context. */
static bool
in_transaction(void (*fn) (void *arg), void *arg, SynchroCatalogError *error)
{
	MemoryContext caller = CurrentMemoryContext;
	volatile bool ok = true;

	PG_TRY();
	{
		SetCurrentStatementStartTimestamp();
		StartTransactionCommand();
		PushActiveSnapshot(GetTransactionSnapshot());
		fn(arg);
		PopActiveSnapshot();
		CommitTransactionCommand();
	}
	PG_CATCH();
	{
		ErrorData  *edata;

		MemoryContextSwitchTo(caller);
		edata = CopyErrorData();
		FlushErrorState();
		AbortCurrentTransaction();
		error->sqlstate = edata->sqlerrcode;
		error->message = edata->message;
		error->hint = edata->hint;
		ok = false;
	}
	PG_END_TRY();
	MemoryContextSwitchTo(caller);
	pgstat_report_stat(false);
	return ok;
}

bool
synchro_catalog_database_exists(const char *name)
{
	Relation	rel;
	TableScanDesc scan;
	HeapTuple	tuple;
	bool		found = false;

	/* Without a database there are no catalog caches and no indexes to use: read pg_database from end to end. */
	StartTransactionCommand();
	(void) GetTransactionSnapshot();
	rel = table_open(DatabaseRelationId, AccessShareLock);
	scan = table_beginscan_catalog(rel, 0, NULL);
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		Form_pg_database form = (Form_pg_database) GETSTRUCT(tuple);

		if (strcmp(NameStr(form->datname), name) == 0 && form->datallowconn)
			found = true;
	}
	table_endscan(scan);
	table_close(rel, AccessShareLock);
	CommitTransactionCommand();
	return found;
}

static void
find_extension(void *arg)
{
	*(Oid *) arg = get_extension_oid("synchro", true);
}

bool
synchro_catalog_extension(Oid *extension)
{
	SynchroCatalogError error;

	return in_transaction(find_extension, extension, &error);
}

/* Drops the slot of an extension that is gone, but not one that the present extension has made its own by the same name since. */
static void
drop_slot(void *arg)
{
	const char *slot = quote_literal_cstr(arg);

	SPI_connect();
	if (OidIsValid(get_extension_oid("synchro", true)) &&
		SPI_execute(psprintf("SELECT FROM synchro.progress WHERE slot_name OPERATOR(pg_catalog.=) %s", slot), true, 1) == SPI_OK_SELECT &&
		SPI_processed > 0)
	{
		SPI_finish();
		return;
	}
	SPI_execute(psprintf("SELECT pg_catalog.pg_drop_replication_slot(slot_name) FROM pg_catalog.pg_replication_slots"
						 " WHERE slot_name OPERATOR(pg_catalog.=) %s AND slot_type OPERATOR(pg_catalog.=) 'logical'"
						 " AND database OPERATOR(pg_catalog.=) pg_catalog.current_database()", slot), false, 0);
	SPI_finish();
}

bool
synchro_catalog_drop_slot(const char *slot_name)
{
	SynchroCatalogError error;

	return in_transaction(drop_slot, (void *) slot_name, &error);
}

/* Finds one of our settings that PostgreSQL could not apply; those of the postmaster only wait for a restart. */
static void
find_file_problem(void *arg)
{
	MemoryContext caller = CurrentMemoryContext;
	char	  **name = arg;

	SPI_connect();
	if (SPI_execute("SELECT name FROM pg_catalog.pg_file_settings"
					" WHERE pg_catalog.starts_with(pg_catalog.lower(name), 'synchro.') AND error IS NOT NULL"
					" AND pg_catalog.lower(name) OPERATOR(pg_catalog.<>) ALL ('{synchro.database,synchro.core_library}')"
					" ORDER BY seqno LIMIT 1", false, 1) == SPI_OK_SELECT && SPI_processed == 1)
		*name = MemoryContextStrdup(TopMemoryContext, SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1));
	SPI_finish();
	MemoryContextSwitchTo(caller);
}

bool
synchro_catalog_file_problem(SynchroConfigProblem *problem)
{
	SynchroCatalogError error;
	char	   *name = NULL;

	if (!in_transaction(find_file_problem, &name, &error) || name == NULL)
		return false;
	problem->message = psprintf("setting %s has an unusable value or an unknown name", name);
	problem->hint = "Correct it in the configuration file and reload.";
	pfree(name);
	return true;
}

static void
prepare_login(void *arg)
{
	char		login[NAMEDATALEN];
	char		password[SYNCHRO_PASSWORD_LEN + 1];

	synchro_login_name(login);
	synchro_password(password);
	synchro_prepare_login(login, password);
	explicit_bzero(password, sizeof(password));
}

bool
synchro_catalog_prepare_login(SynchroCatalogError *error)
{
	return in_transaction(prepare_login, NULL, error);
}
