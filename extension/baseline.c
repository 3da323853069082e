/*
 * baseline.c
 *		Fills a relation's projection from the source.
 *
 * The source is scanned directly: no query, so neither policies nor rules nor expressions of the application take part, and what is
 * read is what the stream would carry. Only the output functions of user-defined types run, as the relation's owner; rows are written
 * as synchro_owner.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"

#include "actas.h"
#include "compat.h"
#include "errcodes.h"
#include "random.h"
#include "seceval.h"

#define BATCH_ROWS 1000
#define BATCH_BYTES (4 * 1024 * 1024)

#if PG_VERSION_NUM >= 170000
#define reindex_projection(relid, flags, params) reindex_relation(NULL, relid, flags, params)
#else
#define reindex_projection(relid, flags, params) reindex_relation(relid, flags, params)
#endif

/* A captured column: from the source's attribute to the projection's. */
typedef struct BaselineColumn
{
	AttrNumber	source;			/* in the relation being scanned: the root or a partition; 0: not there */
	AttrNumber	target;
	char	   *name;
	Oid			type;			/* of the source */
	bool		required;		/* by this generation; others are of before it */
	bool		by_text;		/* the stored type is another: its text travels */
	FmgrInfo	output;
	FmgrInfo	input;
	Oid			input_param;
} BaselineColumn;

typedef struct Baseline
{
	Oid			source_oid;
	Oid			owner;			/* of the source */
	int			ncolumns;
	BaselineColumn *columns;
	Relation	target;
	AttrNumber	version_column;
	AttrNumber	xmin_column;
	AttrNumber	scopes_column;
	Datum		no_scopes;
	/* of the relation being scanned */
	TableScanDesc scan;
	TupleTableSlot *row;
	bool		done;			/* asked again after its end, a heap scan starts anew */
	/* the batch */
	MemoryContext batch;
	TupleTableSlot *slots[BATCH_ROWS];
	int			nslots;
} Baseline;

static void
refuse_drift(const char *column)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("a registered table is not what it was when it was registered"),
			 column ? errdetail("Column \"%s\" is not there, or has another type.", column) : 0,
			 errhint("Restore the table and its columns, or unregister it. Without a column of its projection view it becomes another table: unregister it, and prepare a new view once that is active.")));
}

/* Reads what the registry says about the relation; raises when the generation does not have it. */
static void
read_registry(Baseline *b, int rel_no, int64 generation)
{
	Oid			types[] = {INT4OID, INT8OID};
	Datum		values[] = {Int32GetDatum(rel_no), Int64GetDatum(generation)};
	MemoryContext caller = CurrentMemoryContext;
	bool		isnull;

	SPI_connect();
	if (SPI_execute_with_args("SELECT l.relation_oid, c.attnum, c.column_name::text, c.source_type, "
							  "c.column_name OPERATOR(pg_catalog.=) ANY (synchro._needed_columns(r, l.view_columns)) "
							  "FROM synchro.registration r JOIN synchro.relation l ON l.rel_no = r.rel_no "
							  "JOIN synchro.captured_column c ON c.rel_no = r.rel_no "
							  "WHERE r.rel_no = $1 AND r.generation = $2 ORDER BY c.attnum",
							  lengthof(types), types, values, NULL, true, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not read the registry");
	if (SPI_processed == 0)
		ereport(ERROR, (errcode(SYNCHRO_ERR_INVALID_PARAMETER), errmsg("the relation is not registered in that generation")));
	b->ncolumns = SPI_processed;
	b->columns = MemoryContextAllocZero(caller, sizeof(BaselineColumn) * b->ncolumns);
	for (int i = 0; i < b->ncolumns; i++)
	{
		HeapTuple	tuple = SPI_tuptable->vals[i];
		TupleDesc	desc = SPI_tuptable->tupdesc;
		BaselineColumn *c = &b->columns[i];
		char		target[32];

		b->source_oid = DatumGetObjectId(SPI_getbinval(tuple, desc, 1, &isnull));
		snprintf(target, sizeof(target), "c%d", DatumGetInt16(SPI_getbinval(tuple, desc, 2, &isnull)));
		c->target = get_attnum(RelationGetRelid(b->target), target);
		c->name = MemoryContextStrdup(caller, SPI_getvalue(tuple, desc, 3));
		c->type = DatumGetObjectId(SPI_getbinval(tuple, desc, 4, &isnull));
		c->required = DatumGetBool(SPI_getbinval(tuple, desc, 5, &isnull));
		if (c->target == InvalidAttrNumber)
			elog(ERROR, "projection lacks column %s", target);
	}
	SPI_finish();
}

static void
prepare_columns(Baseline *b)
{
	for (int i = 0; i < b->ncolumns; i++)
	{
		BaselineColumn *c = &b->columns[i];
		Oid			stored = TupleDescAttr(RelationGetDescr(b->target), c->target - 1)->atttypid;
		Oid			function;
		bool		varlena;

		c->by_text = getBaseType(c->type) != stored;
		if (!c->by_text)
			continue;
		getTypeOutputInfo(c->type, &function, &varlena);
		fmgr_info(function, &c->output);
		getTypeInputInfo(stored, &function, &c->input_param);
		fmgr_info(function, &c->input);
	}
	b->version_column = get_attnum(RelationGetRelid(b->target), "server_version");
	b->xmin_column = get_attnum(RelationGetRelid(b->target), "row_xmin");
	b->scopes_column = get_attnum(RelationGetRelid(b->target), "scopes");
	b->no_scopes = PointerGetDatum(construct_empty_array(INT8OID));
}

/* Columns by name: a partition numbers them in its own way. */
static void
map_columns(Baseline *b, Relation rel)
{
	for (int i = 0; i < b->ncolumns; i++)
	{
		BaselineColumn *c = &b->columns[i];

		c->source = get_attnum(RelationGetRelid(rel), c->name);
		if (c->source != InvalidAttrNumber && TupleDescAttr(RelationGetDescr(rel), c->source - 1)->atttypid != c->type)
			c->source = InvalidAttrNumber;
		if (c->source == InvalidAttrNumber && c->required)
			refuse_drift(c->name);
	}
}

/* Row b->row becomes the next row of the batch; returns its size. */
static Size
add_row(Baseline *b)
{
	TupleTableSlot *slot;
	char		version[SYN_VERSION_LEN];
	HeapTuple	source = ExecFetchSlotHeapTuple(b->row, false, NULL);

	slot = b->slots[b->nslots++];
	ExecClearTuple(slot);
	memset(slot->tts_isnull, true, sizeof(bool) * slot->tts_tupleDescriptor->natts);
	for (int i = 0; i < b->ncolumns; i++)
	{
		BaselineColumn *c = &b->columns[i];
		Datum		value;

		if (c->source == InvalidAttrNumber)
			continue;			/* NULL */
		value = slot_getattr(b->row, c->source, &slot->tts_isnull[c->target - 1]);

		if (c->by_text && !slot->tts_isnull[c->target - 1])
			value = InputFunctionCall(&c->input, OutputFunctionCall(&c->output, value), c->input_param, -1);
		slot->tts_values[c->target - 1] = value;
	}
	syn_random_version(version);
	slot->tts_values[b->version_column - 1] = PointerGetDatum(cstring_to_text_with_len(version, SYN_VERSION_LEN));
	slot->tts_isnull[b->version_column - 1] = false;
	slot->tts_values[b->xmin_column - 1] = TransactionIdGetDatum(HeapTupleHeaderGetRawXmin(source->t_data));
	slot->tts_isnull[b->xmin_column - 1] = false;
	slot->tts_values[b->scopes_column - 1] = b->no_scopes;
	slot->tts_isnull[b->scopes_column - 1] = false;
	ExecStoreVirtualTuple(slot);
	ExecMaterializeSlot(slot);	/* the source's buffer goes away with the next row */
	return ExecFetchSlotHeapTuple(slot, false, NULL)->t_len;
}

/* Runs as the source's owner. */
static void
read_batch(void *arg)
{
	Baseline   *b = arg;
	MemoryContext caller = MemoryContextSwitchTo(b->batch);
	Size		bytes = 0;

	while (!b->done && b->nslots < BATCH_ROWS && bytes < BATCH_BYTES)
	{
		if (table_scan_getnextslot(b->scan, ForwardScanDirection, b->row))
			bytes += add_row(b);
		else
			b->done = true;
	}
	MemoryContextSwitchTo(caller);
}

/* Runs as synchro_owner. */
static void
write_batch(Baseline *b, EState *estate, ResultRelInfo *info, BulkInsertState bulk)
{
	MemoryContext caller = MemoryContextSwitchTo(b->batch);

	table_multi_insert(b->target, b->slots, b->nslots, GetCurrentCommandId(true), 0, bulk);
	MemoryContextSwitchTo(caller);
	for (int i = 0; i < b->nslots; i++)
	{
		if (info->ri_NumIndices > 0)
			list_free(syn_insert_index_tuples(info, b->slots[i], estate, false, false));
		ResetPerTupleExprContext(estate);
	}
}

static int64
copy_relation(Baseline *b, Oid relid, EState *estate, ResultRelInfo *info, BulkInsertState bulk)
{
	Relation	rel = table_open(relid, AccessShareLock);
	int64		rows = 0;

	if (rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
	{
		table_close(rel, NoLock);
		return 0;
	}
	if (rel->rd_rel->relkind != RELKIND_RELATION || rel->rd_rel->relam != HEAP_TABLE_AM_OID)
		ereport(ERROR, (errcode(SYNCHRO_ERR_UNSUPPORTED_RELATION), errmsg("only heap tables can be registered")));
	map_columns(b, rel);
	b->row = table_slot_create(rel, NULL);
	b->scan = table_beginscan(rel, GetActiveSnapshot(), 0, NULL);
	b->done = false;
	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		b->nslots = 0;
		MemoryContextReset(b->batch);
		syn_restricted_call(b->owner, read_batch, b);
		if (b->nslots == 0)
			break;
		write_batch(b, estate, info, bulk);
		rows += b->nslots;
	}
	table_endscan(b->scan);
	ExecDropSingleTupleTableSlot(b->row);
	table_close(rel, NoLock);
	return rows;
}

/* An empty projection that nobody looks at: its indexes are made at the end, which costs a fraction of an entry at a time. */
static bool
may_build_indexes_later(Relation target)
{
	return RelationGetNumberOfBlocks(target) == 0 && ConditionalLockRelationOid(RelationGetRelid(target), AccessExclusiveLock);
}

static int64
copy_all(Baseline *b)
{
	/* not reference-counted: a thousand slots would pin it a thousand times */
	TupleDesc	desc = CreateTupleDescCopyConstr(RelationGetDescr(b->target));
	bool		indexes_later = may_build_indexes_later(b->target);
	ReindexParams params = {0};
	EState	   *estate = CreateExecutorState();
	ResultRelInfo *info = makeNode(ResultRelInfo);
	BulkInsertState bulk = GetBulkInsertState();
	bool		partitioned = get_rel_relkind(b->source_oid) == RELKIND_PARTITIONED_TABLE;
	List	   *relids = partitioned ? find_all_inheritors(b->source_oid, AccessShareLock, NULL) : list_make1_oid(b->source_oid);
	ListCell   *cell;
	int64		rows = 0;

	InitResultRelInfo(info, b->target, 0, NULL, 0);
	if (!indexes_later)
		ExecOpenIndices(info, false);
	b->batch = AllocSetContextCreate(CurrentMemoryContext, "synchro baseline", ALLOCSET_DEFAULT_SIZES);
	for (int i = 0; i < BATCH_ROWS; i++)
		b->slots[i] = MakeSingleTupleTableSlot(desc, &TTSOpsHeapTuple);
	foreach(cell, relids)
		rows += copy_relation(b, lfirst_oid(cell), estate, info, bulk);
	for (int i = 0; i < BATCH_ROWS; i++)
		ExecDropSingleTupleTableSlot(b->slots[i]);
	if (!indexes_later)
		ExecCloseIndices(info);
	FreeBulkInsertState(bulk);
	FreeExecutorState(estate);
	CommandCounterIncrement();
	if (indexes_later && rows > 0)
		reindex_projection(RelationGetRelid(b->target), REINDEX_REL_CHECK_CONSTRAINTS, &params);
	return rows;
}

PG_FUNCTION_INFO_V1(synchro_baseline);

/* _baseline(rel_no int, generation bigint, target name) bigint */
Datum
synchro_baseline(PG_FUNCTION_ARGS)
{
	Baseline   *b = palloc0(sizeof(Baseline));
	char	   *name = NameStr(*PG_GETARG_NAME(2));
	Oid			target = get_relname_relid(name, get_namespace_oid("synchro_data", false));
	Relation	source;
	SynActor	caller;
	int64		rows;

	if (!OidIsValid(target))
		ereport(ERROR, (errcode(SYNCHRO_ERR_INVALID_PARAMETER), errmsg("there is no such projection")));
	syn_act_as(&caller, syn_owner());
	b->target = table_open(target, RowExclusiveLock);
	read_registry(b, PG_GETARG_INT32(0), PG_GETARG_INT64(1));
	prepare_columns(b);

	source = try_table_open(b->source_oid, AccessShareLock);
	if (source == NULL)
		refuse_drift(NULL);
	b->owner = source->rd_rel->relowner;
	if (check_enable_rls(b->source_oid, b->owner, true) == RLS_ENABLED)
		ereport(ERROR,
				(errcode(SYNCHRO_ERR_UNSUPPORTED_RELATION),
				 errmsg("row-level security of table %s applies to its owner", RelationGetRelationName(source)),
				 errhint("ALTER TABLE ... NO FORCE ROW LEVEL SECURITY: clients are not served by the owner."),
				 errtable(source)));

	SPI_connect();
	if (SPI_execute(psprintf("DELETE FROM synchro_data.%s", quote_identifier(name)), false, 0) != SPI_OK_DELETE)
		elog(ERROR, "could not empty the projection");
	SPI_finish();
	rows = copy_all(b);
	table_close(source, NoLock);
	table_close(b->target, NoLock);
	syn_act_back(&caller);
	PG_RETURN_INT64(rows);
}
