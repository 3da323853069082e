/*
 * ddl.h
 *		Triggers of registered relations, and what guards them.
 */
#ifndef SYNCHRO_DDL_H
#define SYNCHRO_DDL_H

#include "postgres.h"

#include "nodes/pg_list.h"
#include "utils/snapshot.h"

/* ddl.c: does the relation, registered itself or as a partition, have our fence? InvalidOid has none. */
extern bool ddl_has_fence(Oid relid);

/* A partition, and partitions of it, have the TRUNCATE guard if they have the fence; when left, they lose it. */
extern void ddl_guard_partition(Oid relid, bool may_have_left);

/*
 * ddl_drift.c
 *
 * Between begin and end of a command: end raises when something registered has drifted in between, or, when the guard is off, tells the
 * worker of a relation whose rows can change unseen. NULL watches nothing.
 */
extern Snapshot ddl_watch_begin(void);
extern void ddl_watch_end(Snapshot before);

/* Is the relation, or the root that it is a partition of, registered as this transaction sees it? InvalidOid is not. */
extern bool ddl_is_guarded(Oid relid);

/* Is it, and is the column captured? */
extern bool ddl_captures(Oid relid, const char *column);

/* A command that changes rows of a guarded relation without row operations: refused, or told to the worker when the guard is off. */
extern void ddl_content_changes(Oid relid, const char *message, const char *hint);

/* Relations of which a captured column holds values of the type. */
extern List *ddl_tables_of_type(Oid typid);

/* ddl_guard.c */
extern void ddl_guard_init(void);

#endif							/* SYNCHRO_DDL_H */
