/*
 * ddl.c
 *		Triggers of registered relations.
 *
 * The relation's owner has no right to use the trigger functions and synchro_owner has none on the relation. So these few fixed commands run
 * as the bootstrap superuser, each built from parse nodes and called without the utility hooks: no code of an application runs in them.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "nodes/makefuncs.h"
#include "nodes/parsenodes.h"
#include "parser/parse_func.h"
#include "storage/lmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/uuid.h"

#include "actas.h"
#include "ddl.h"
#include "errcodes.h"
#include "fence.h"

static Oid
trigger_function(const char *name)
{
	return LookupFuncName(list_make2(makeString("synchro"), makeString(pstrdup(name))), 0, NULL, false);
}

/* ENABLE ALWAYS from the start: the trigger also fires for a session that replays changes. */
static void
create_trigger(Oid relid, CreateTrigStmt *stmt)
{
	Oid			function = trigger_function(stmt->trigname);
	SynActor	caller;

	stmt->replace = true;
	syn_act_as(&caller, BOOTSTRAP_SUPERUSERID);
	CreateTriggerFiringOn(stmt, NULL, relid, InvalidOid, InvalidOid, InvalidOid, function, InvalidOid, NULL, false, false,
						  TRIGGER_FIRES_ALWAYS);
	syn_act_back(&caller);
	CommandCounterIncrement();
}

/* "1 2 3" */
static Node *
number_list(ArrayType *array)
{
	StringInfoData out;
	Datum	   *values;
	int			n;

	initStringInfo(&out);
	deconstruct_array(array, INT2OID, sizeof(int16), true, TYPALIGN_SHORT, &values, NULL, &n);
	for (int i = 0; i < n; i++)
		appendStringInfo(&out, "%s%d", i > 0 ? " " : "", DatumGetInt16(values[i]));
	return (Node *) makeString(out.data);
}

/* Captured stored generated columns of the relation. */
static Node *
generated_list(int rel_no)
{
	Oid			types[] = {INT4OID};
	Datum		values[] = {Int32GetDatum(rel_no)};
	StringInfoData out;
	SynActor	caller;

	initStringInfo(&out);
	syn_act_as(&caller, syn_owner());
	SPI_connect();
	if (SPI_execute_with_args("SELECT attnum FROM synchro.captured_column WHERE rel_no = $1 AND generated ORDER BY attnum",
							  lengthof(types), types, values, NULL, true, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not read captured columns");
	for (uint64 i = 0; i < SPI_processed; i++)
		appendStringInfo(&out, "%s%s", i > 0 ? " " : "", SPI_getvalue(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1));
	SPI_finish();
	syn_act_back(&caller);
	return (Node *) makeString(out.data);
}

static CreateTrigStmt *
trigger_statement(const char *name, int timing, int events, bool row)
{
	CreateTrigStmt *stmt = makeNode(CreateTrigStmt);

	stmt->trigname = pstrdup(name);
	stmt->timing = timing;
	stmt->events = events;
	stmt->row = row;
	return stmt;
}

/* The relation and, because statement triggers are not cloned, its partitions. */
static List *
truncatable_relations(Oid relid, LOCKMODE lock)
{
	return get_rel_relkind(relid) == RELKIND_PARTITIONED_TABLE ? find_all_inheritors(relid, lock, NULL) : list_make1_oid(relid);
}

bool
ddl_has_fence(Oid relid)
{
	Oid			trigger = OidIsValid(relid) ? get_trigger_oid(relid, FENCE_TRIGGER, true) : InvalidOid;
	Relation	rel;
	Oid			function;
	bool		found = false;

	if (!OidIsValid(trigger) || !OidIsValid(get_namespace_oid("synchro", true)))
		return false;
	function = LookupFuncName(list_make2(makeString("synchro"), makeString(FENCE_TRIGGER)), 0, NULL, true);
	rel = try_table_open(relid, AccessShareLock);
	for (int i = 0; rel && rel->trigdesc && i < rel->trigdesc->numtriggers; i++)
		found = found || (rel->trigdesc->triggers[i].tgoid == trigger && rel->trigdesc->triggers[i].tgfoid == function);
	if (rel)
		table_close(rel, AccessShareLock);
	return found;
}

PG_FUNCTION_INFO_V1(synchro_lock_relation);

/* _lock_relation(relation oid) void: LOCK TABLE, for a role that has no right on it. */
Datum
synchro_lock_relation(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);

	LockRelationOid(relid, ShareRowExclusiveLock);
	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)))
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE), errmsg("the relation does not exist any more")));
	(void) find_all_inheritors(relid, ShareRowExclusiveLock, NULL);
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(synchro_install_triggers);

/*
 * _install_triggers(rel_no int, relation oid, relation_id uuid, table_id uuid, kind "char", key_attnum smallint,
 * sync_attnums smallint[], text_attnums smallint[], required_attnums smallint[]) void
 */
Datum
synchro_install_triggers(PG_FUNCTION_ARGS)
{
	int			rel_no = PG_GETARG_INT32(0);
	Oid			relid = PG_GETARG_OID(1);
	char		kind = PG_GETARG_CHAR(4);
	AttrNumber	key = PG_GETARG_INT16(5);
	Relation	rel;
	CreateTrigStmt *stmt;
	Node	   *args[FENCE_ARGS];
	ListCell   *cell;

	for (int i = 0; i < PG_NARGS(); i++)
		if (PG_ARGISNULL(i) && !(i == 3 && kind == 'd'))
			ereport(ERROR, (errcode(SYNCHRO_ERR_INVALID_PARAMETER), errmsg("an argument is missing")));
	rel = table_open(relid, ShareRowExclusiveLock);
	if (kind != 's' && kind != 'd')
		ereport(ERROR, (errcode(SYNCHRO_ERR_INVALID_PARAMETER), errmsg("a registration is synced or a capture dependency")));
	if (rel->rd_rel->relkind == RELKIND_RELATION && rel->rd_rel->relam != HEAP_TABLE_AM_OID)
		ereport(ERROR,
				(errcode(SYNCHRO_ERR_UNSUPPORTED_RELATION),
				 errmsg("only heap tables can be registered"),
				 errdetail_internal("{\"error\": {\"code\": \"invalid_registration\", \"reason\": \"unsupported_relation\"}}"),
				 errhint("ALTER TABLE ... SET ACCESS METHOD heap.")));

	args[FENCE_ARG_REL_NO] = (Node *) makeString(psprintf("%d", rel_no));
	args[FENCE_ARG_KIND] = (Node *) makeString(psprintf("%c", kind));
	args[FENCE_ARG_RELATION_ID] = (Node *) makeString(DatumGetCString(DirectFunctionCall1(uuid_out, PG_GETARG_DATUM(2))));
	args[FENCE_ARG_TABLE_ID] = (Node *)
		makeString(kind == 's' ? DatumGetCString(DirectFunctionCall1(uuid_out, PG_GETARG_DATUM(3))) : pstrdup(""));
	args[FENCE_ARG_RELATION] = (Node *)
		makeString(quote_qualified_identifier(get_namespace_name(RelationGetNamespace(rel)), RelationGetRelationName(rel)));
	args[FENCE_ARG_KEY] = (Node *) makeString(psprintf("%d", key));
	args[FENCE_ARG_SYNCED] = number_list(PG_GETARG_ARRAYTYPE_P(6));
	args[FENCE_ARG_AS_TEXT] = number_list(PG_GETARG_ARRAYTYPE_P(7));
	args[FENCE_ARG_REQUIRED] = number_list(PG_GETARG_ARRAYTYPE_P(8));
	args[FENCE_ARG_GENERATED] = generated_list(rel_no);
	stmt = trigger_statement(FENCE_TRIGGER, TRIGGER_TYPE_AFTER, TRIGGER_TYPE_INSERT | TRIGGER_TYPE_UPDATE | TRIGGER_TYPE_DELETE, true);
	for (int i = 0; i < FENCE_ARGS; i++)
		stmt->args = lappend(stmt->args, args[i]);
	create_trigger(relid, stmt);

	stmt = trigger_statement(KEY_GUARD_TRIGGER, TRIGGER_TYPE_BEFORE, TRIGGER_TYPE_UPDATE, true);
	stmt->columns = list_make1(makeString(get_attname(relid, key, false)));
	create_trigger(relid, stmt);

	foreach(cell, truncatable_relations(relid, ShareRowExclusiveLock))
		create_trigger(lfirst_oid(cell), trigger_statement(TRUNCATE_GUARD_TRIGGER, TRIGGER_TYPE_BEFORE, TRIGGER_TYPE_TRUNCATE, false));
	table_close(rel, NoLock);
	PG_RETURN_VOID();
}

/* Drops our trigger of that name; clones in partitions go with it. */
static void
drop_trigger(Oid relid, const char *name)
{
	Relation	rel = table_open(relid, AccessExclusiveLock);
	Oid			function = trigger_function(name);
	ObjectAddress address = {TriggerRelationId, InvalidOid, 0};

	for (int i = 0; rel->trigdesc && i < rel->trigdesc->numtriggers; i++)
	{
		Trigger    *trigger = &rel->trigdesc->triggers[i];

		if (strcmp(trigger->tgname, name) == 0 && trigger->tgfoid == function && !trigger->tgisclone)
			address.objectId = trigger->tgoid;
	}
	table_close(rel, NoLock);
	if (OidIsValid(address.objectId))
	{
		performDeletion(&address, DROP_RESTRICT, PERFORM_DELETION_INTERNAL);
		CommandCounterIncrement();
	}
}

void
ddl_guard_partition(Oid relid, bool may_have_left)
{
	bool		fenced = ddl_has_fence(relid);
	ListCell   *cell;

	if (!OidIsValid(relid) || (!fenced && !may_have_left))
		return;
	foreach(cell, truncatable_relations(relid, fenced ? ShareRowExclusiveLock : AccessExclusiveLock))
	{
		if (fenced)
			create_trigger(lfirst_oid(cell), trigger_statement(TRUNCATE_GUARD_TRIGGER, TRIGGER_TYPE_BEFORE, TRIGGER_TYPE_TRUNCATE, false));
		else
			drop_trigger(lfirst_oid(cell), TRUNCATE_GUARD_TRIGGER);
	}
}

/* Does the active generation, or one to come, contain the relation? */
static bool
is_registered(Oid relid)
{
	Oid			types[] = {OIDOID};
	Datum		values[] = {ObjectIdGetDatum(relid)};
	SynActor	caller;
	bool		found;

	syn_act_as(&caller, syn_owner());
	SPI_connect();
	if (SPI_execute_with_args("SELECT FROM synchro.standing_registration r WHERE r.relation_oid = $1",
							  lengthof(types), types, values, NULL, false, 1) != SPI_OK_SELECT)
		elog(ERROR, "could not read the registry");
	found = SPI_processed > 0;
	SPI_finish();
	syn_act_back(&caller);
	return found;
}

PG_FUNCTION_INFO_V1(synchro_remove_triggers);

/*
 * _remove_triggers(relation oid) void; nothing happens when the relation is gone, or registered: it may have come back between the
 * caller's question and our lock, which waits for a registration.
 */
Datum
synchro_remove_triggers(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);
	Relation	rel = try_table_open(relid, AccessExclusiveLock);
	ListCell   *cell;

	if (rel == NULL)
		PG_RETURN_VOID();
	table_close(rel, NoLock);
	if (is_registered(relid))
		PG_RETURN_VOID();
	drop_trigger(relid, FENCE_TRIGGER);
	drop_trigger(relid, KEY_GUARD_TRIGGER);
	foreach(cell, truncatable_relations(relid, AccessExclusiveLock))
		drop_trigger(lfirst_oid(cell), TRUNCATE_GUARD_TRIGGER);
	PG_RETURN_VOID();
}
