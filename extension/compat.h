/*
 * compat.h
 *		Differences between PostgreSQL 15 and 18, where a macro hides them.
 */
#ifndef SYNCHRO_COMPAT_H
#define SYNCHRO_COMPAT_H

#include "postgres.h"

#include "replication/message.h"
#include "utils/acl.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

/* 17 flushes on request; 15 and 16 leave that to the caller. */
#if PG_VERSION_NUM >= 170000
#define syn_log_message(content, len, transactional) \
	LogLogicalMessage("synchro", content, len, transactional, false)
#else
#define syn_log_message(content, len, transactional) \
	LogLogicalMessage("synchro", content, len, transactional)
#endif

#if PG_VERSION_NUM >= 160000
#define syn_function_aclcheck(oid, role) object_aclcheck(ProcedureRelationId, oid, role, ACL_EXECUTE)
#define syn_schema_aclcheck(oid, role) object_aclcheck(NamespaceRelationId, oid, role, ACL_USAGE)
#else
#define syn_function_aclcheck(oid, role) pg_proc_aclcheck(oid, role, ACL_EXECUTE)
#define syn_schema_aclcheck(oid, role) pg_namespace_aclcheck(oid, role, ACL_USAGE)
#endif

/* ProcedureCreate's protrftypes; 18 also takes the list. */
#if PG_VERSION_NUM >= 180000
#define SYN_NO_TRANSFORMS PointerGetDatum(NULL), NIL
#else
#define SYN_NO_TRANSFORMS PointerGetDatum(NULL)
#endif

/* 16 knows indexes that only summarize, and says which ones an update needs. */
#if PG_VERSION_NUM >= 160000
#define SynUpdateIndexes TU_UpdateIndexes
#define syn_updates_indexes(indexes) ((indexes) != TU_None)
#define syn_updates_summaries(indexes) ((indexes) == TU_Summarizing)
#define syn_insert_index_tuples(info, slot, estate, update, summaries) \
	ExecInsertIndexTuples(info, slot, estate, update, false, NULL, NIL, summaries)
#else
#define SynUpdateIndexes bool
#define syn_updates_indexes(indexes) (indexes)
#define syn_updates_summaries(indexes) false
#define syn_insert_index_tuples(info, slot, estate, update, summaries) \
	ExecInsertIndexTuples(info, slot, estate, update, false, NULL, NIL)
#endif

/* 18 takes a place for instrumentation. */
#if PG_VERSION_NUM >= 180000
#define syn_index_beginscan(rel, index, snapshot, nkeys) index_beginscan(rel, index, snapshot, NULL, nkeys, 0)
#else
#define syn_index_beginscan(rel, index, snapshot, nkeys) index_beginscan(rel, index, snapshot, nkeys, 0)
#endif

/* 18 has it, for the front of a declaration. */
#if PG_VERSION_NUM < 180000
#define pg_noreturn pg_attribute_noreturn()
#endif

#endif							/* SYNCHRO_COMPAT_H */
