/*
 * push_write.c
 *		Everything that touches the application's tables: reads, locks, conversions and writes, as synchro_writer.
 *
 * The row security policies and grants of synchro_writer decide what a push sees and may do; triggers, defaults, checks, domains and
 * policy functions run as that role and reach nothing of the extension but synchro_subject().
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

#include "push.h"

/* Enters code of the application; push_leave ends it. An error in between is the application's. */
void
push_enter(PushBatch *batch, PushRole *saved)
{
	batch->application = true;
	push_become(saved, batch->writer, 0);
}

void
push_leave(PushBatch *batch, const PushRole *saved)
{
	push_unbecome(saved);
	batch->application = false;
}

static uint64
exec_as_writer(PushBatch *batch, const char *sql, int nargs, const Oid *types, const Datum *args, const char *nulls)
{
	PushRole	saved;
	uint64		n;

	push_enter(batch, &saved);
	n = push_exec(sql, nargs, types, args, nulls);
	push_leave(batch, &saved);
	return n;
}

/* A copy of the whole row in a column of the result. */
static Datum
copy_row(PushRelation *rel, int column)
{
	if (TupleDescAttr(SPI_tuptable->tupdesc, column - 1)->atttypid != rel->rowtype)
		elog(ERROR, "a row is not of its table's type");
	return datumCopy(push_column(0, column, NULL), false, -1);
}

/*
 * Reads or locks the row as the writer sees it. A lock is taken by key alone: with any other condition a row that just changed
 * could drop out of the result instead of being locked in its new version. False: no such row.
 */
bool
push_select(PushBatch *batch, PushRow *row, PushSelect mode, PushImage *image)
{
	PushRelation *rel = row->rel;
	StringInfoData sql;
	bool		found;

	initStringInfo(&sql);
	appendStringInfoString(&sql, "SELECT t.xmin, ");
	if (rel->deleted)
		appendStringInfo(&sql, "t.%s IS NOT NULL", rel->deleted);
	else
		appendStringInfoString(&sql, "false");
	if (mode == PUSH_READ)
		appendStringInfo(&sql, ", t.*::%s", rel->source);	/* "t" alone could be a column */
	appendStringInfo(&sql, " FROM %s AS t WHERE t.%s OPERATOR(pg_catalog.=) $1%s", rel->source, rel->key->name,
					 mode == PUSH_LOCK_UPDATE ? " FOR NO KEY UPDATE OF t" : mode == PUSH_LOCK_DELETE ? " FOR UPDATE OF t" : "");

	found = exec_as_writer(batch, sql.data, 1, &rel->key->typid, &row->key, NULL) == 1;
	if (found)
	{
		image->xmin = DatumGetTransactionId(push_column(0, 1, NULL));
		image->deleted = DatumGetBool(push_column(0, 2, NULL));
		image->row = (Datum) 0;
		if (mode == PUSH_READ)
			image->row = copy_row(rel, 3);
	}
	SPI_freetuptable(SPI_tuptable);
	pfree(sql.data);
	return found;
}

/* Does a row of that key exist, whoever may see it? Read as the table's owner; what it holds is not looked at. */
bool
push_exists_unfiltered(PushRow *row)
{
	char	   *sql = psprintf("SELECT true AS found FROM %s AS t WHERE t.%s OPERATOR(pg_catalog.=) $1",
							   row->rel->source, row->rel->key->name);
	int			nest = NewGUCNestLevel();
	PushRole	saved;
	bool		found;

	(void) set_config_option("row_security", "off", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	push_become(&saved, row->rel->owner, SECURITY_RESTRICTED_OPERATION);
	found = push_exec(sql, 1, &row->rel->key->typid, &row->key, NULL) > 0;
	push_unbecome(&saved);
	AtEOXact_GUC(false, nest);
	SPI_freetuptable(SPI_tuptable);
	return found;
}

static PushColumn *
find_column(PushRelation *rel, const char *name, int len)
{
	for (int i = 0; i < rel->fields->nfields; i++)
		if (strlen(rel->columns[i].field->field_id) == len && memcmp(rel->columns[i].field->field_id, name, len) == 0)
			return &rel->columns[i];
	elog(ERROR, "a field of a mutation is not in the manifest");
	return NULL;
}

/* Would the column silently round the value? (Decimals have been checked against precision and scale.) */
static bool
rounds(PushColumn *column, char *text, Datum value)
{
	int32		typmod = column->typmod;
	Oid			base = getBaseTypeAndTypmod(column->typid, &typmod);

	if (typmod < 0 || (base != TIMESTAMPOID && base != TIMESTAMPTZOID && base != TIMEOID))
		return false;
	return DatumGetInt64(OidInputFunctionCall(column->input.fn_oid, text, column->ioparam, -1)) != DatumGetInt64(value);
}

/* The value of one column, by its type's input function. False: it has none. */
static bool
input_value(PushBatch *batch, PushColumn *column, const JcsNode *node, Datum *value, char *null)
{
	char	   *text;

	if (!syn_wire_to_text(column->field->type, column->field->as_text ? InvalidOid : column->typid, column->typmod, node, &text))
		return false;
	if (!column->has_input)
	{
		Oid			input;

		getTypeInputInfo(column->typid, &input, &column->ioparam);
		fmgr_info_cxt(input, &column->input, batch->mcxt);
		column->has_input = true;
	}
	*value = InputFunctionCall(&column->input, text, column->ioparam, column->typmod);
	*null = text ? ' ' : 'n';
	return !text || !rounds(column, text, *value);
}

/* The settings that texts of columns synced as text are written under, until AtEOXact_GUC of the result. */
static int
pin_input(void)
{
	static const char *const settings[][2] = {
		{"datestyle", "ISO, MDY"}, {"intervalstyle", "postgres"}, {"timezone", "UTC"}, {"array_nulls", "on"}
	};
	int			nest = NewGUCNestLevel();

	for (int i = 0; i < lengthof(settings); i++)
		(void) set_config_option(settings[i][0], settings[i][1], PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	return nest;
}

/*
 * Turns the mutation's columns into values[1..] in member order; values[0] is the key. Domains run functions of the application,
 * so this happens as the writer, in the mutation's subtransaction. False: a value has no form in its column.
 */
bool
push_values(PushBatch *batch, PushMutation *m, Datum *values, char *nulls)
{
	int			nest = 0;
	PushRole	saved;
	bool		valid = true;

	values[0] = m->row->key;
	nulls[0] = ' ';
	for (int i = 0; m->columns && i < m->columns->len && nest == 0; i++)
		if (find_column(m->rel, m->columns->u.members[i].name, m->columns->u.members[i].namelen)->pinned)
			nest = pin_input();
	push_enter(batch, &saved);
	for (int i = 0; m->columns && i < m->columns->len && valid; i++)
	{
		const JcsMember *member = &m->columns->u.members[i];
		PushColumn *column = find_column(m->rel, member->name, member->namelen);

		m->column = column->field->column;
		valid = input_value(batch, column, member->value, &values[i + 1], &nulls[i + 1]);
	}
	if (valid)
		m->column = NULL;
	push_leave(batch, &saved);
	if (nest > 0)
		AtEOXact_GUC(false, nest);
	return valid;
}

/* Types of the values of push_values. */
static Oid *
value_types(PushMutation *m)
{
	int			n = m->columns ? m->columns->len : 0;
	Oid		   *types = palloc(sizeof(Oid) * (n + 1));

	types[0] = m->rel->key->typid;
	for (int i = 0; i < n; i++)
	{
		const JcsMember *member = &m->columns->u.members[i];

		types[i + 1] = find_column(m->rel, member->name, member->namelen)->typid;
	}
	return types;
}

/* Inserts the row; an absent column gets its default. False: a trigger suppressed it. */
bool
push_insert(PushBatch *batch, PushMutation *m, Datum *values, char *nulls)
{
	PushRelation *rel = m->rel;
	StringInfoData names;
	StringInfoData params;

	initStringInfo(&names);
	initStringInfo(&params);
	for (int i = 0; i < m->columns->len; i++)
	{
		const JcsMember *member = &m->columns->u.members[i];

		appendStringInfo(&names, ", %s", find_column(rel, member->name, member->namelen)->name);
		appendStringInfo(&params, ", $%d", i + 2);
	}
	return exec_as_writer(batch, psprintf("INSERT INTO %s (%s%s) VALUES ($1%s)", rel->source, rel->key->name,
										  names.data, params.data),
						  m->columns->len + 1, value_types(m), values, nulls) == 1;
}

/* The SET list of an update of exactly the given columns, never the key. */
static char *
update_list(PushMutation *m)
{
	StringInfoData list;

	initStringInfo(&list);
	for (int i = 0; i < m->columns->len; i++)
	{
		const JcsMember *member = &m->columns->u.members[i];

		appendStringInfo(&list, "%s%s = $%d", i > 0 ? ", " : "", find_column(m->rel, member->name, member->namelen)->name, i + 2);
	}
	return list.data;
}

/* The SET list of a soft deletion. */
static char *
deletion_list(PushRelation *rel)
{
	if (!rel->deletion_time)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("the deletion column is neither a timestamp nor a date")));
	return psprintf("%s = %s", rel->deleted, rel->deletion_time);
}

/* Writes the given columns. False: a trigger suppressed it. */
bool
push_update(PushBatch *batch, PushMutation *m, Datum *values, char *nulls)
{
	PushRelation *rel = m->rel;

	return exec_as_writer(batch, psprintf("UPDATE %s AS t SET %s WHERE t.%s OPERATOR(pg_catalog.=) $1", rel->source,
										  update_list(m), rel->key->name),
						  m->columns->len + 1, value_types(m), values, nulls) == 1;
}

/* Deletes the row, or sets its deletion column where there is one. False: a trigger or policy suppressed it. */
bool
push_delete(PushBatch *batch, PushMutation *m)
{
	PushRelation *rel = m->rel;
	char	   *sql;

	if (rel->deleted)
		sql = psprintf("UPDATE %s AS t SET %s WHERE t.%s OPERATOR(pg_catalog.=) $1", rel->source, deletion_list(rel), rel->key->name);
	else
		sql = psprintf("DELETE FROM %s AS t WHERE t.%s OPERATOR(pg_catalog.=) $1", rel->source, rel->key->name);
	return exec_as_writer(batch, sql, 1, &rel->key->typid, &m->row->key, NULL) == 1;
}

/*
 * Update or soft delete on condition that the row still is the version that was visible before: it compares, locks and writes at
 * once. False says nothing, least of all that the row changed: it was not written, and what stands against it remains to be found out.
 */
bool
push_swap(PushBatch *batch, PushMutation *m, Datum *values, char *nulls)
{
	PushRelation *rel = m->rel;
	int			n = m->op == PUSH_UPDATE ? m->columns->len + 1 : 1;
	Oid		   *types = palloc(sizeof(Oid) * (n + 1));
	Datum	   *args = palloc(sizeof(Datum) * (n + 1));
	char	   *null_args = palloc(n + 1);
	StringInfoData sql;
	bool		written;

	memcpy(types, value_types(m), sizeof(Oid) * n);
	memcpy(args, values, sizeof(Datum) * n);
	memcpy(null_args, nulls, n);
	types[n] = XIDOID;
	args[n] = TransactionIdGetDatum(m->row->xmin);
	null_args[n] = ' ';

	initStringInfo(&sql);
	appendStringInfo(&sql, "UPDATE %s AS t SET %s WHERE t.%s OPERATOR(pg_catalog.=) $1 AND t.xmin OPERATOR(pg_catalog.=) $%d",
					 rel->source, m->op == PUSH_UPDATE ? update_list(m) : deletion_list(rel), rel->key->name, n + 1);
	if (rel->deleted)
		appendStringInfo(&sql, " AND t.%s IS NULL", rel->deleted);
	appendStringInfo(&sql, " RETURNING t.*::%s", rel->source);
	written = exec_as_writer(batch, sql.data, n + 1, types, args, null_args) == 1;
	/* the table is locked against new triggers only now */
	if (written && push_is_plain(rel->relid))
		m->written = copy_row(rel, 1);
	SPI_freetuptable(SPI_tuptable);
	return written;
}

/* SET CONSTRAINTS ALL, as the writer: what becomes immediate runs now. */
void
push_constraints(PushBatch *batch, bool deferred)
{
	ConstraintsSetStmt *stmt = makeNode(ConstraintsSetStmt);
	PushRole	saved;

	stmt->constraints = NIL;
	stmt->deferred = deferred;
	push_enter(batch, &saved);
	AfterTriggerSetState(stmt);
	push_leave(batch, &saved);
}
