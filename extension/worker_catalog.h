/*
 * worker_catalog.h - the worker's own short transactions; a failing one is an answer, never the end of the worker
 */
#ifndef SYNCHRO_WORKER_CATALOG_H
#define SYNCHRO_WORKER_CATALOG_H

#include "postgres.h"

#include "guc.h"

typedef struct SynchroCatalogError
{
	int			sqlstate;
	const char *message;
	const char *hint;			/* or NULL */
} SynchroCatalogError;

/* Settings of the worker's session that no configuration of the database may change. */
extern void synchro_catalog_session(void);

/* Is there a database of this name that accepts connections?  For a worker that is in no database. */
extern bool synchro_catalog_database_exists(const char *name);

/* The extension's OID in our database, invalid when there is none; false and unchanged when nobody can say. */
extern bool synchro_catalog_extension(Oid *extension);

/* Drops a slot of our database; false while somebody still uses it. */
extern bool synchro_catalog_drop_slot(const char *slot_name);

/* Does a configuration file have a setting of ours with an unusable value? */
extern bool synchro_catalog_file_problem(SynchroConfigProblem *problem);

/* Makes the core's login ready; false: *error says why not. */
extern bool synchro_catalog_prepare_login(SynchroCatalogError *error);

#endif							/* SYNCHRO_WORKER_CATALOG_H */
