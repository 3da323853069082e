/*
 * ddl_drift.c
 *		Refuses commands after which a registered table would no longer be what was registered.
 *
 * What that means is said once, in synchro._drift(), which the worker asks too. Here it is asked before and after a command: what
 * only then is wrong, the command has done, be it by CASCADE. What a command changes in the rows themselves shows in no catalog: it is
 * refused by name, or, with the guard off, told to the worker, which then blocks at the command's commit. So is what makes a relation
 * blind: the worker looks at the catalogs now and then, and what was off and on again in between it would never know.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "executor/spi.h"
#include "libpq/pqformat.h"
#include "parser/parse_func.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"

#include "actas.h"
#include "ddl.h"
#include "guc.h"
#include "message.h"

#define DRIFT "SELECT d.\"check\", d.reason, CASE WHEN l.rel_no IS NULL THEN '' ELSE pg_catalog.format('%I.%I', l.physical_schema, l.physical_relation) END, " \
	"coalesce(d.rel_no, 0), d.blind FROM synchro._drift() d LEFT JOIN synchro.relation l ON l.rel_no = d.rel_no " \
	"ORDER BY d.\"check\" <> 'relations', d.\"check\" <> 'key', d.\"check\", d.rel_no"

typedef struct Drift
{
	char	   *check;
	char	   *reason;
	char	   *table;
	int			rel_no;			/* 0: of no one relation */
	bool		blind;			/* its rows may change without a trace */
} Drift;

/* What a command must not do, in words; the first that fits. NULL fits all. */
static const struct
{
	const char *check;
	const char *reason;
	const char *message;		/* of the table's name */
	const char *hint;
}			refusals[] = {
#define RECONFIGURE "To change it on purpose, call synchro_unregister_table() before and synchro_register_table() after it, in one transaction."
#define WAIT "Unregister the table, and go on once the worker has activated that."
#define OURS "Registration keeps the publication in step. A superuser who knows better can set synchro.ddl_guard to off."
	{"relations", "dropped", "registered table %s cannot be dropped", "Call synchro_unregister_table() before it, in the same transaction."},
	{"relations", "renamed", "registered table %s cannot be renamed or moved",
	"To change it on purpose, unregister the table, and register it under its new name once the worker has activated that."},
	{"relations", "unlogged", "registered table %s cannot become unlogged, nor have unlogged partitions", "Unregister the table first."},
	{"relations", "access_method", "registered table %s and its partitions must be heap tables", "Make it a heap table: USING heap."},
	{"relations", "replica_identity", "the replica identity of registered table %s cannot be changed", "Capture needs REPLICA IDENTITY DEFAULT."},
	{"key", NULL, "the primary key of registered table %s cannot be changed", "Move its rows to a new table, and register that."},
	{"columns", NULL, "captured columns of registered table %s cannot be renamed, retyped or dropped",
	"To drop one, register the table without it first; what its projection view names stays as long as the table is registered. Instead of renaming or retyping, add a column and register the table with it."},
	{"triggers", NULL, "the triggers that capture registered table %s cannot be disabled or dropped",
	"Rows written without them would not be captured. A superuser who knows better can set synchro.ddl_guard to off."},
	{"publication", NULL, "the publication of registered tables cannot be changed%s", OURS},
	{"publication_relations", NULL, "registered table %s cannot be taken out of the publication", OURS},
	{"functions", NULL, "a registered function of table %s cannot be dropped", WAIT},
	{"assignment", NULL, "the registered assignment function cannot be dropped%s", "Unregister it first: synchro_unregister_assignment_function()."},
	{NULL, NULL, "registered table %s would no longer be what was registered", RECONFIGURE},
};

static bool
extension_is_there(void)
{
	Oid			types[1];

	return !creating_extension && OidIsValid(get_namespace_oid("synchro", true)) &&
		OidIsValid(LookupFuncName(list_make2(makeString("synchro"), makeString("_drift")), 0, types, true));
}

/* Rows of a query over the registry, run as synchro_owner under the snapshot; the caller ends it with close_registry. */
static void
query_registry(const char *query, Snapshot snapshot, Oid relid, SynActor *caller)
{
	Oid			types[] = {OIDOID};
	Datum		values[] = {ObjectIdGetDatum(relid)};

	syn_act_as(caller, syn_owner());
	PushActiveSnapshot(snapshot);
	SPI_connect();
	if (SPI_execute_with_args(query, lengthof(types), types, values, NULL, true, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not read the registry");
}

static void
close_registry(const SynActor *caller)
{
	SPI_finish();
	PopActiveSnapshot();
	syn_act_back(caller);
}

static List *
drifts(Snapshot snapshot)
{
	MemoryContext context = CurrentMemoryContext;
	List	   *all = NIL;
	SynActor	caller;

	query_registry(DRIFT, snapshot, InvalidOid, &caller);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		Drift	   *d = MemoryContextAlloc(context, sizeof(Drift));
		HeapTuple	row = SPI_tuptable->vals[i];
		TupleDesc	desc = SPI_tuptable->tupdesc;
		MemoryContext spi = MemoryContextSwitchTo(context);
		bool		isnull;

		d->check = pstrdup(SPI_getvalue(row, desc, 1));
		d->reason = pstrdup(SPI_getvalue(row, desc, 2));
		d->table = pstrdup(SPI_getvalue(row, desc, 3));
		d->rel_no = DatumGetInt32(SPI_getbinval(row, desc, 4, &isnull));
		d->blind = DatumGetBool(SPI_getbinval(row, desc, 5, &isnull));
		all = lappend(all, d);
		MemoryContextSwitchTo(spi);
	}
	close_registry(&caller);
	return all;
}

static bool
knows(List *all, const Drift *d)
{
	ListCell   *cell;

	foreach(cell, all)
	{
		const Drift *known = lfirst(cell);

		if (strcmp(known->check, d->check) == 0 && strcmp(known->reason, d->reason) == 0 && strcmp(known->table, d->table) == 0)
			return true;
	}
	return false;
}

static bool
knows_blind(List *all, int rel_no)
{
	ListCell   *cell;

	foreach(cell, all)
		if (((const Drift *) lfirst(cell))->blind && ((const Drift *) lfirst(cell))->rel_no == rel_no)
			return true;
	return false;
}

static void
refuse_drift(const Drift *d)
{
	int			i = 0;

	while (refusals[i].check && (strcmp(refusals[i].check, d->check) != 0 ||
								 (refusals[i].reason && strcmp(refusals[i].reason, d->reason) != 0)))
		i++;
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg(refusals[i].message, d->table),
			 errhint("%s", refusals[i].hint)));
}

/* Rows of the relation may have changed, or will from here on, with nothing in the WAL to tell of it: the worker has to stop at this commit. */
static void
tell_worker(int rel_no)
{
	StringInfoData body;

	message_begin(&body);
	pq_sendint32(&body, rel_no);
	message_emit(MESSAGE_DRIFT, &body, true);
}

/* With the guard off: of each relation that is blind in one of the lists only, the beginning or the end. */
static void
tell_blindness(List *these, List *those)
{
	ListCell   *cell;

	foreach(cell, these)
	{
		const Drift *d = lfirst(cell);

		if (d->blind && !knows_blind(those, d->rel_no))
			tell_worker(d->rel_no);
	}
}

Snapshot
ddl_watch_begin(void)
{
	return extension_is_there() ? RegisterSnapshot(GetLatestSnapshot()) : NULL;
}

/* Most commands leave nothing wrong behind, and only then it matters to the guard what was wrong before. */
void
ddl_watch_end(Snapshot before)
{
	List	   *now;
	List	   *then = NIL;
	ListCell   *cell;

	if (before == NULL)
		return;
	if (extension_is_there())
	{
		CommandCounterIncrement();
		now = drifts(GetLatestSnapshot());
		if (now != NIL || !synchro_ddl_guard)
			then = drifts(before);
		if (synchro_ddl_guard)
			foreach(cell, now)
				if (!knows(then, lfirst(cell)))
					refuse_drift(lfirst(cell));
		tell_blindness(now, then);
		tell_blindness(then, now);
	}
	UnregisterSnapshot(before);
}

static Oid
root_of(Oid relid)
{
	List	   *ancestors = get_rel_relispartition(relid) ? get_partition_ancestors(relid) : NIL;

	return ancestors == NIL ? relid : llast_oid(ancestors);
}

/*
 * rel_no of the root table that is registered, as this transaction sees it: one that it has unregistered is free. 0: not registered;
 * -1: it has a fence that no registration knows.
 */
static int
registered_as(Oid root)
{
	SynActor	caller;
	bool		isnull;
	int			rel_no;

	if (!ddl_has_fence(root) || !extension_is_there())
		return 0;
	query_registry("SELECT coalesce((SELECT r.rel_no FROM synchro.registration r JOIN synchro.relation l ON l.rel_no = r.rel_no "
				   "WHERE l.relation_oid = $1 AND r.generation = synchro._newest_generation()), "
				   "CASE WHEN EXISTS (SELECT FROM synchro.relation l WHERE l.relation_oid = $1) THEN 0 ELSE -1 END)",
				   GetLatestSnapshot(), root, &caller);
	rel_no = DatumGetInt32(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull));
	close_registry(&caller);
	return rel_no;
}

bool
ddl_is_guarded(Oid relid)
{
	return OidIsValid(relid) && registered_as(root_of(relid)) != 0;
}

bool
ddl_captures(Oid relid, const char *column)
{
	SynActor	caller;
	bool		found = false;

	if (!ddl_is_guarded(relid))
		return false;
	query_registry("SELECT c.column_name FROM synchro.captured_column c JOIN synchro.relation l ON l.rel_no = c.rel_no "
				   "WHERE l.relation_oid = $1", GetLatestSnapshot(), root_of(relid), &caller);
	for (uint64 i = 0; i < SPI_processed; i++)
		found = found || strcmp(SPI_getvalue(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1), column) == 0;
	close_registry(&caller);
	return found;
}

void
ddl_content_changes(Oid relid, const char *message, const char *hint)
{
	int			rel_no = registered_as(root_of(relid));

	if (rel_no == 0)
		return;
	if (synchro_ddl_guard)
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("%s", message), errhint("%s", hint)));
	if (rel_no > 0)
		tell_worker(rel_no);
}

List *
ddl_tables_of_type(Oid typid)
{
	MemoryContext context = CurrentMemoryContext;
	List	   *tables = NIL;
	SynActor	caller;

	if (!extension_is_there())
		return NIL;
	/* the type itself, its arrays and ranges, domains over them, and composites that hold any of these */
	query_registry("WITH RECURSIVE t (oid) AS (SELECT $1 UNION "
				   "SELECT y.oid FROM t CROSS JOIN LATERAL ("
				   "SELECT p.oid FROM pg_catalog.pg_type p WHERE p.typelem = t.oid OR p.typbasetype = t.oid "
				   "UNION ALL SELECT r.rngtypid FROM pg_catalog.pg_range r WHERE r.rngsubtype = t.oid "
				   "UNION ALL SELECT c.reltype FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid "
				   "WHERE a.atttypid = t.oid AND c.reltype <> 0) y) "
				   "SELECT DISTINCT l.relation_oid FROM synchro.captured_column c JOIN synchro.relation l ON l.rel_no = c.rel_no "
				   "JOIN t ON t.oid = c.source_type", GetLatestSnapshot(), typid, &caller);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		MemoryContext spi = MemoryContextSwitchTo(context);
		bool		isnull;

		tables = lappend_oid(tables, DatumGetObjectId(SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1, &isnull)));
		MemoryContextSwitchTo(spi);
	}
	close_registry(&caller);
	return tables;
}
