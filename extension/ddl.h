/*
 * ddl.h
 *		Triggers of registered relations, and what guards them.
 */
#ifndef SYNCHRO_DDL_H
#define SYNCHRO_DDL_H

#include "postgres.h"

/* ddl.c: does the relation, registered itself or as a partition, have our fence? InvalidOid has none. */
extern bool ddl_has_fence(Oid relid);

/* A partition, and partitions of it, have the TRUNCATE guard if they have the fence; when left, they lose it. */
extern void ddl_guard_partition(Oid relid, bool may_have_left);

/* ddl_guard.c */
extern void ddl_guard_init(void);

#endif							/* SYNCHRO_DDL_H */
