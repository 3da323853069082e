/*
 * bgworker_register.c - one background worker for each database of synchro.database
 */
#include "postgres.h"

#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "postmaster/bgworker.h"
#include "utils/memutils.h"
#include "utils/varlena.h"

#include "bgworker.h"
#include "errcodes.h"
#include "guc.h"
#include "worker_state.h"

/* Registers the worker of one database. */
static void
register_worker(int number, const char *database)
{
	BackgroundWorker bgw;

	memset(&bgw, 0, sizeof(bgw));
	bgw.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	bgw.bgw_start_time = BgWorkerStart_RecoveryFinished;
	bgw.bgw_restart_time = 1;
	bgw.bgw_main_arg = Int32GetDatum(number);
	strlcpy(bgw.bgw_library_name, "synchro", BGW_MAXLEN);
	strlcpy(bgw.bgw_function_name, "synchro_worker_main", BGW_MAXLEN);
	strlcpy(bgw.bgw_type, "synchro worker", BGW_MAXLEN);
	snprintf(bgw.bgw_name, BGW_MAXLEN, "synchro worker of %s", database);
	RegisterBackgroundWorker(&bgw);
}

/* Is this a list of distinct database names? */
static bool
parse_databases(List **names)
{
	ListCell   *a,
			   *b;

	if (!SplitGUCList(pstrdup(synchro_database), ',', names))
		return false;
	foreach(a, *names)
	{
		size_t		length = strlen(lfirst(a));

		if (length == 0 || length >= NAMEDATALEN)
			return false;
		for_each_cell(b, *names, lnext(*names, a))
			if (strcmp(lfirst(a), lfirst(b)) == 0)
				return false;
	}
	return true;
}

void
synchro_bgworker_init(void)
{
	MemoryContext before = MemoryContextSwitchTo(TopMemoryContext);
	List	   *names = NIL;
	char	  **databases;
	int			n = 0;
	ListCell   *lc;

	if (IsBinaryUpgrade)
		names = NIL;			/* pg_upgrade wants nobody else in its databases */
	else if (!parse_databases(&names))
	{
		/* An error would keep the whole server down. */
		ereport(WARNING,
				(errcode(SYNCHRO_ERR_INVALID_CONFIGURATION),
				 errmsg("synchro.database is no list of distinct database names: nothing is synchronized"),
				 errhint("Correct synchro.database and restart the server.")));
		names = NIL;
	}
	databases = palloc0(sizeof(char *) * (list_length(names) + 1));
	foreach(lc, names)
	{
		databases[n] = lfirst(lc);
		register_worker(n, databases[n]);
		n++;
	}
	synchro_worker_state_init(databases, n);
	MemoryContextSwitchTo(before);
}
