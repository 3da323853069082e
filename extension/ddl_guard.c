/*
 * ddl_guard.c
 *		Commands that would break a registered table.
 *
 * What a command would leave behind in the catalogs is watched by ddl_drift.c. Here is what changes the rows without any row operation,
 * of which nothing in the WAL tells the worker: a partition that comes with rows or goes with them, a column that is computed anew, a
 * renamed label of an enum. A new partition gets the TRUNCATE guard that statement triggers don't inherit. A table with inheritance
 * children would hold rows without fences.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/tableam.h"
#include "catalog/namespace.h"
#include "catalog/objectaccess.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "commands/tablecmds.h"
#include "commands/trigger.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/parsenodes.h"
#include "parser/parse_type.h"
#include "storage/lmgr.h"
#include "tcop/utility.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "ddl.h"
#include "guc.h"

static ProcessUtility_hook_type next_hook = NULL;
static object_access_hook_type next_access = NULL;

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
require_empty(Oid root, Oid relid, const char *message)
{
	if (OidIsValid(relid) && holds_rows(relid))
		ddl_content_changes(root, message, "Move its rows with DELETE and INSERT, or unregister the table first.");
}

/* Values that hold all attributes of the type, in captured columns, would read otherwise; of a table, values of its row type. */
static void
check_attributes(AlterTableStmt *statement)
{
	Oid			relid = owned_relation(statement->relation, NoLock);
	ListCell   *cell;

	if (OidIsValid(relid) && OidIsValid(get_rel_type_id(relid)))
		foreach(cell, ddl_tables_of_type(get_rel_type_id(relid)))
			ddl_content_changes(lfirst_oid(cell), "attributes of a type in captured columns of a registered table cannot be added or dropped",
								"Unregister the tables with the type before, and register them again after it, in one transaction.");
}

/* The table's captured column would be computed anew, or written in another form. Inheritors change with their parent. */
static void
check_rewrite(AlterTableStmt *statement, const char *column)
{
	Oid			relid = owned_relation(statement->relation, NoLock);
	ListCell   *cell;

	if (OidIsValid(relid))
		foreach(cell, find_all_inheritors(relid, NoLock, NULL))
			if (ddl_captures(lfirst_oid(cell), column))
				ddl_content_changes(lfirst_oid(cell), "the values of a captured column of a registered table cannot be computed anew",
									"Instead of retyping, add a column and register the table with it. Where the type stays, and only its length, "
									"its precision or the expression changes, call synchro_unregister_table() before and "
									"synchro_register_table() after it, in one transaction.");
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
		Oid			root;

		switch (command->subtype)
		{
			case AT_AttachPartition:
				partition = castNode(PartitionCmd, command->def);
				root = owned_relation(statement->relation, NoLock);
				if (!ddl_is_guarded(root))
					break;
				require_empty(root, owned_relation(partition->name, AccessExclusiveLock), "a partition of a registered table must come empty");
				changed = partition->name;
				break;
			case AT_DetachPartition:
				partition = castNode(PartitionCmd, command->def);
				root = owned_relation(statement->relation, NoLock);
				if (!ddl_is_guarded(root))
					break;
				if (partition->concurrent && synchro_ddl_guard)
					refuse("a partition of a registered table cannot be detached concurrently", "Detach it without CONCURRENTLY.");
				(void) owned_relation(statement->relation, AccessExclusiveLock);	/* the order of DETACH itself */
				require_empty(root, owned_relation(partition->name, AccessExclusiveLock), "a partition of a registered table must go empty");
				changed = partition->name;
				break;
			case AT_AddInherit:
				if (synchro_ddl_guard && ddl_is_guarded(RangeVarGetRelid(castNode(RangeVar, command->def), NoLock, true)))
					refuse("a registered table cannot have inheritance children", "Unregister the table first.");
				break;
			case AT_AlterColumnType:
#if PG_VERSION_NUM >= 170000
			case AT_SetExpression:
#endif
				check_rewrite(statement, command->name);
				break;
			case AT_AddColumn:
			case AT_DropColumn:
				check_attributes(statement);
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
			if (ddl_is_guarded(RangeVarGetRelid(lfirst_node(RangeVar, cell), NoLock, true)))
				refuse("a registered table cannot have inheritance children", "Unregister the table first.");
}

/* A label that rows hold by its number reads otherwise from now on. */
static void
check_enum(AlterEnumStmt *statement)
{
	Oid			typid = statement->oldVal ? LookupTypeNameOid(NULL, makeTypeNameFromNameList(statement->typeName), true) : InvalidOid;
	ListCell   *cell;

	if (OidIsValid(typid))
		foreach(cell, ddl_tables_of_type(typid))
			ddl_content_changes(lfirst_oid(cell), "a label in captured columns of a registered table cannot be renamed",
								"Unregister the tables with the type before, and register them again after it, in one transaction.");
}

/* Of a table of the command: has it a fence? Only then the command can do it harm, unless it cascades. */
static bool
fenced(RangeVar *name)
{
	return name && ddl_has_fence(RangeVarGetRelid(name, NoLock, true));
}

static bool
fenced_inheritor(RangeVar *name)
{
	Oid			relid = name ? RangeVarGetRelid(name, NoLock, true) : InvalidOid;
	ListCell   *cell;

	if (OidIsValid(relid))
		foreach(cell, find_all_inheritors(relid, NoLock, NULL))
			if (ddl_has_fence(lfirst_oid(cell)))
				return true;
	return false;
}

static bool
alter_may_harm(AlterTableStmt *statement)
{
	ListCell   *cell;
	bool		cascades = false;

	foreach(cell, statement->cmds)
	{
		AlterTableCmd *command = lfirst_node(AlterTableCmd, cell);

		if (command->subtype == AT_DetachPartition && castNode(PartitionCmd, command->def)->concurrent)
			return false;		/* commits in between */
		cascades = cascades || command->behavior == DROP_CASCADE;
	}
	return cascades || fenced_inheritor(statement->relation);
}

static bool
drop_may_harm(DropStmt *statement)
{
	ListCell   *cell;

	if (statement->concurrent)
		return false;
	if (statement->behavior == DROP_CASCADE)
		return true;
	switch (statement->removeType)
	{
		case OBJECT_FUNCTION:
		case OBJECT_ROUTINE:
		case OBJECT_PUBLICATION:
			return true;
		case OBJECT_TABLE:
			foreach(cell, statement->objects)
				if (fenced(makeRangeVarFromNameList(lfirst_node(List, cell))))
					return true;
			return false;
		case OBJECT_TRIGGER:
			foreach(cell, statement->objects)
			{
				List	   *table = list_copy(lfirst_node(List, cell));	/* the trigger's name comes last */

				if (fenced(makeRangeVarFromNameList(list_truncate(table, list_length(table) - 1))))
					return true;
			}
			return false;
		default:
			return false;
	}
}

/* May the command leave something registered other than it was? When in doubt it is looked at afterwards. */
static bool
may_harm(Node *statement)
{
	switch (nodeTag(statement))
	{
		case T_AlterTableStmt:
			return alter_may_harm((AlterTableStmt *) statement);
		case T_DropStmt:
			return drop_may_harm((DropStmt *) statement);
		case T_RenameStmt:
			return ((RenameStmt *) statement)->relation == NULL || fenced_inheritor(((RenameStmt *) statement)->relation);
		case T_AlterObjectSchemaStmt:
			return fenced(((AlterObjectSchemaStmt *) statement)->relation);
		case T_CreateStmt:
			return ((CreateStmt *) statement)->partbound && fenced(linitial_node(RangeVar, ((CreateStmt *) statement)->inhRelations));
		case T_CreateTrigStmt:
			return ((CreateTrigStmt *) statement)->replace && fenced(((CreateTrigStmt *) statement)->relation);
		case T_AlterPublicationStmt:
		case T_DropOwnedStmt:
			return true;
		default:
			return false;
	}
}

static void
guard_ddl(PlannedStmt *planned, const char *query, bool read_only_tree, ProcessUtilityContext context, ParamListInfo params,
		  QueryEnvironment *environment, DestReceiver *dest, QueryCompletion *completion)
{
	Node	   *statement = planned->utilityStmt;
	RangeVar   *partition = NULL;
	Snapshot	before = NULL;

	if (IsA(statement, AlterTableStmt) && (((AlterTableStmt *) statement)->objtype == OBJECT_TABLE ||
											((AlterTableStmt *) statement)->objtype == OBJECT_TYPE))
		partition = check_alter((AlterTableStmt *) statement);
	else if (IsA(statement, AlterEnumStmt))
		check_enum((AlterEnumStmt *) statement);
	else if (IsA(statement, CreateStmt))
	{
		check_create((CreateStmt *) statement);
		if (((CreateStmt *) statement)->partbound)
			partition = copyObject(((CreateStmt *) statement)->relation);
	}
	if (may_harm(statement))
		before = ddl_watch_begin();
	(next_hook ? next_hook : standard_ProcessUtility) (planned, query, read_only_tree, context, params, environment, dest, completion);
	if (partition)
		ddl_guard_partition(RangeVarGetRelid(partition, NoLock, true), IsA(statement, AlterTableStmt));
	ddl_watch_end(before);
}

/* A partition that is dropped, by whatever command, with rows of a registered table. */
static void
guard_drop(ObjectAccessType access, Oid class, Oid object, int sub, void *arg)
{
	if (access == OAT_DROP && class == RelationRelationId && sub == 0 && get_rel_relispartition(object) && ddl_is_guarded(object))
		require_empty(object, object, "a partition of a registered table must go empty");
	if (next_access)
		next_access(access, class, object, sub, arg);
}

void
ddl_guard_init(void)
{
	next_hook = ProcessUtility_hook;
	ProcessUtility_hook = guard_ddl;
	next_access = object_access_hook;
	object_access_hook = guard_drop;
}
