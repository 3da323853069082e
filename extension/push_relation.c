/*
 * push_relation.c
 *		What a push needs to know of a relation before it writes to it.
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/namespace.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "parser/parse_func.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "errcodes.h"
#include "fence.h"
#include "push.h"

static void
lookup_function(FmgrInfo *function, const char *name, int nargs, const Oid *types)
{
	List	   *qualified = list_make2(makeString("synchro"), makeString(pstrdup(name)));

	fmgr_info_cxt(LookupFuncName(qualified, nargs, types, false), function, CurrentMemoryContext);
}

/* The registration in force no longer is what the request was checked against. */
void
push_registration_moved(void)
{
	ereport(ERROR,
			(errcode(SYNCHRO_ERR_TEMPORARY_UNAVAILABLE),
			 errmsg("the registration changed during the push")));
}

/* Is text of the type read the same way under all settings? */
static bool
reads_alike(Oid typid)
{
	switch (typid)
	{
		case BOOLOID:
		case INT2OID:
		case INT4OID:
		case INT8OID:
		case FLOAT4OID:
		case FLOAT8OID:
		case NUMERICOID:
		case TEXTOID:
		case VARCHAROID:
		case BPCHAROID:
		case UUIDOID:
		case BYTEAOID:
		case JSONOID:
		case JSONBOID:
			return true;
		default:
			return false;
	}
}

static void
describe_columns(PushRelation *rel, TupleDesc desc)
{
	rel->columns = palloc0(sizeof(PushColumn) * rel->fields->nfields);
	for (int i = 0; i < rel->fields->nfields; i++)
	{
		const SynField *field = &rel->fields->fields[i];
		PushColumn *column = &rel->columns[i];
		Form_pg_attribute att = field->attnum <= desc->natts ? TupleDescAttr(desc, field->attnum - 1) : NULL;

		if (!att || att->attisdropped)
			push_registration_moved();
		column->field = field;
		column->name = pstrdup(quote_identifier(NameStr(att->attname)));
		column->typid = att->atttypid;
		column->typmod = att->atttypmod;
		column->pinned = !reads_alike(getBaseType(att->atttypid));
	}
	rel->key = &rel->columns[rel->fields->key];
}

/* When a soft deletion happened, as a value of the deletion column. */
static const char *
deletion_time(Oid typid)
{
	switch (getBaseType(typid))
	{
		case TIMESTAMPTZOID:
			return "pg_catalog.now()";
		case TIMESTAMPOID:
			return "pg_catalog.timezone('UTC', pg_catalog.now())";
		case DATEOID:
			return "pg_catalog.date(pg_catalog.timezone('UTC', pg_catalog.now()))";
		default:
			return NULL;
	}
}

/* What a push needs to know of a relation. */
void
push_describe(PushRelation *rel, int64 schema_version, const char *deleted_column)
{
	static const Oid row_types[] = {INT4OID, INT8OID, RECORDOID, TEXTOID};
	Relation	relation = try_table_open(rel->relid, AccessShareLock);
	Oid			output;
	bool		varlena;

	if (!relation)
		ereport(ERROR,
				(errcode(SYNCHRO_ERR_TEMPORARY_UNAVAILABLE),
				 errmsg("a registered relation is gone"),
				 errdetail("{\"reason\":\"capture_blocked\"}")));
	rel->owner = relation->rd_rel->relowner;
	rel->rowtype = relation->rd_rel->reltype;
	rel->source = quote_qualified_identifier(get_namespace_name(RelationGetNamespace(relation)),
											 RelationGetRelationName(relation));
	rel->plain = push_is_plain(rel->relid);
	rel->fields = syn_relation(rel->rel_no, schema_version);
	describe_columns(rel, RelationGetDescr(relation));
	if (deleted_column)
	{
		AttrNumber	attnum = get_attnum(rel->relid, deleted_column);

		if (attnum == InvalidAttrNumber)
			push_registration_moved();
		rel->deleted = pstrdup(quote_identifier(deleted_column));
		rel->deletion_time = deletion_time(get_atttype(rel->relid, attnum));
	}
	table_close(relation, AccessShareLock);

	getTypeOutputInfo(rel->key->typid, &output, &varlena);
	fmgr_info_cxt(output, &rel->key_output, CurrentMemoryContext);
	rel->key_array = get_array_type(rel->key->typid);
	lookup_function(&rel->row_json, "_row_json", 3, row_types);
	lookup_function(&rel->row_digest, "_row_digest", 4, row_types);
}

/* Could a trigger that an UPDATE fires do more than look? Ours and those of constraints that refuse don't. */
static bool
only_looks(const Trigger *trigger)
{
	switch (trigger->tgfoid)
	{
		case F_RI_FKEY_CHECK_UPD:
		case F_RI_FKEY_NOACTION_UPD:
		case F_RI_FKEY_RESTRICT_UPD:
		case F_UNIQUE_KEY_RECHECK:
			return true;
		default:
			return strcmp(trigger->tgname, FENCE_TRIGGER) == 0 || strcmp(trigger->tgname, KEY_GUARD_TRIGGER) == 0;
	}
}

/* Does an UPDATE of the relation change the rows that it finds and nothing else? The caller has the relation locked. */
bool
push_is_plain(Oid relid)
{
	Relation	relation = table_open(relid, NoLock);
	TriggerDesc *triggers = relation->trigdesc;
	bool		plain = relation->rd_rel->relkind == RELKIND_RELATION && !relation->rd_rel->relhassubclass &&
		relation->rd_rules == NULL;

	for (int i = 0; plain && triggers && i < triggers->numtriggers; i++)
		if (TRIGGER_FOR_UPDATE(triggers->triggers[i].tgtype))
			plain = only_looks(&triggers->triggers[i]);
	table_close(relation, NoLock);
	return plain;
}
