/*
 * ddl_guard.c
 *		Changes of a registered table's partitions and children.
 *
 * A partition that comes with rows, or goes with them, changes what the registered table holds without any row operation: nothing in
 * the WAL tells it to the worker. So a partition comes and goes empty, and a new one gets the TRUNCATE guard that statement triggers don't
 * inherit. A table with inheritance children would hold rows without fences.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/tableam.h"
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "commands/tablecmds.h"
#include "commands/trigger.h"
#include "executor/tuptable.h"
#include "nodes/makefuncs.h"
#include "nodes/parsenodes.h"
#include "storage/lmgr.h"
#include "tcop/utility.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "ddl.h"
#include "guc.h"

static ProcessUtility_hook_type next_hook = NULL;

static void
refuse(const char *message, const char *hint)
{
	ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("%s", message), errhint("%s", hint)));
}

static Oid
owned_relation(RangeVar *name, LOCKMODE lock)
{
	return RangeVarGetRelidExtended(name, lock, RVR_MISSING_OK, RangeVarCallbackOwnsRelation, NULL);
}

static bool
holds_rows(Oid relid)
{
	List	   *all = find_all_inheritors(relid, AccessExclusiveLock, NULL);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	bool		found = false;
	ListCell   *cell;

	foreach(cell, all)
	{
		Relation	rel = table_open(lfirst_oid(cell), NoLock);

		if (!found && RELKIND_HAS_TABLE_AM(rel->rd_rel->relkind))
		{
			TupleTableSlot *slot = table_slot_create(rel, NULL);
			TableScanDesc scan = table_beginscan(rel, snapshot, 0, NULL);

			found = table_scan_getnextslot(scan, ForwardScanDirection, slot);
			table_endscan(scan);
			ExecDropSingleTupleTableSlot(slot);
		}
		else if (rel->rd_rel->relkind == RELKIND_FOREIGN_TABLE)
			found = true;
		table_close(rel, NoLock);
	}
	UnregisterSnapshot(snapshot);
	return found;
}

static void
require_empty(Oid relid, const char *message)
{
	if (synchro_ddl_guard && OidIsValid(relid) && holds_rows(relid))
		refuse(message, "Move its rows with DELETE and INSERT, or unregister the table first.");
}

/* Returns the partition that the command attaches to a registered table, or detaches from it. */
static RangeVar *
check_alter(AlterTableStmt *statement)
{
	RangeVar   *changed = NULL;
	ListCell   *cell;

	foreach(cell, statement->cmds)
	{
		AlterTableCmd *command = lfirst_node(AlterTableCmd, cell);
		PartitionCmd *partition;

		switch (command->subtype)
		{
			case AT_AttachPartition:
				partition = castNode(PartitionCmd, command->def);
				if (!ddl_has_fence(owned_relation(statement->relation, NoLock)))
					break;
				require_empty(owned_relation(partition->name, AccessExclusiveLock), "a partition of a registered table must come empty");
				changed = partition->name;
				break;
			case AT_DetachPartition:
				partition = castNode(PartitionCmd, command->def);
				if (!ddl_has_fence(owned_relation(statement->relation, NoLock)))
					break;
				if (partition->concurrent && synchro_ddl_guard)
					refuse("a partition of a registered table cannot be detached concurrently", "Detach it without CONCURRENTLY.");
				(void) owned_relation(statement->relation, AccessExclusiveLock);	/* the order of DETACH itself */
				require_empty(owned_relation(partition->name, AccessExclusiveLock), "a partition of a registered table must go empty");
				changed = partition->name;
				break;
			case AT_AddInherit:
				if (synchro_ddl_guard && ddl_has_fence(RangeVarGetRelid(castNode(RangeVar, command->def), NoLock, true)))
					refuse("a registered table cannot have inheritance children", "Unregister the table first.");
				break;
			default:
				break;
		}
	}
	return changed;
}

static void
check_create(CreateStmt *statement)
{
	ListCell   *cell;

	if (!statement->partbound && synchro_ddl_guard)
		foreach(cell, statement->inhRelations)
			if (ddl_has_fence(RangeVarGetRelid(lfirst_node(RangeVar, cell), NoLock, true)))
				refuse("a registered table cannot have inheritance children", "Unregister the table first.");
}

static bool
drops_ancestor(List *dropped, Oid relid)
{
	ListCell   *cell;

	foreach(cell, get_partition_ancestors(relid))
		if (list_member_oid(dropped, lfirst_oid(cell)))
			return true;
	return false;
}

/* Partitions that are dropped without their registered table. */
static void
check_drop(DropStmt *statement)
{
	List	   *dropped = NIL;
	ListCell   *cell;

	if (statement->removeType != OBJECT_TABLE)
		return;
	foreach(cell, statement->objects)
		dropped = lappend_oid(dropped, RangeVarGetRelid(makeRangeVarFromNameList(lfirst_node(List, cell)), NoLock, true));
	foreach(cell, dropped)
	{
		Oid			relid = lfirst_oid(cell);
		RangeVar   *name;

		if (!OidIsValid(relid) || !get_rel_relispartition(relid) || !ddl_has_fence(relid) ||
			drops_ancestor(dropped, relid))
			continue;
		name = makeRangeVar(get_namespace_name(get_rel_namespace(relid)), get_rel_name(relid), -1);
		(void) owned_relation(name, NoLock);
		LockRelationOid(get_partition_parent(relid, true), AccessExclusiveLock);	/* the order of DROP itself */
		require_empty(owned_relation(name, AccessExclusiveLock), "a partition of a registered table must go empty");
	}
}

static void
guard_ddl(PlannedStmt *planned, const char *query, bool read_only_tree, ProcessUtilityContext context, ParamListInfo params,
		  QueryEnvironment *environment, DestReceiver *dest, QueryCompletion *completion)
{
	Node	   *statement = planned->utilityStmt;
	RangeVar   *partition = NULL;

	if (IsA(statement, AlterTableStmt) && ((AlterTableStmt *) statement)->objtype == OBJECT_TABLE)
		partition = check_alter((AlterTableStmt *) statement);
	else if (IsA(statement, DropStmt))
		check_drop((DropStmt *) statement);
	else if (IsA(statement, CreateStmt))
	{
		check_create((CreateStmt *) statement);
		if (((CreateStmt *) statement)->partbound)
			partition = copyObject(((CreateStmt *) statement)->relation);
	}
	(next_hook ? next_hook : standard_ProcessUtility) (planned, query, read_only_tree, context, params, environment, dest, completion);
	if (partition)
		ddl_guard_partition(RangeVarGetRelid(partition, NoLock, true), IsA(statement, AlterTableStmt));
}

void
ddl_guard_init(void)
{
	next_hook = ProcessUtility_hook;
	ProcessUtility_hook = guard_ddl;
}
