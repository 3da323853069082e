/*
 * push_prepare.c
 *		From the request's mutations to relations, target rows and operations.
 *
 * The request's shape and what the manifests say of it are already checked (sql/functions/_push_classify.sql).
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "nodes/makefuncs.h"
#include "parser/parse_func.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "errcodes.h"
#include "push.h"

static void
lookup_function(FmgrInfo *function, const char *name, int nargs, const Oid *types)
{
	List	   *qualified = list_make2(makeString("synchro"), makeString(pstrdup(name)));

	fmgr_info_cxt(LookupFuncName(qualified, nargs, types, false), function, CurrentMemoryContext);
}

/* The registration in force no longer is what the request was checked against. */
static void
registration_moved(void)
{
	ereport(ERROR,
			(errcode(SYNCHRO_ERR_TEMPORARY_UNAVAILABLE),
			 errmsg("the registration changed during the push")));
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
			registration_moved();
		column->field = field;
		column->name = pstrdup(quote_identifier(NameStr(att->attname)));
		column->typid = att->atttypid;
		column->typmod = att->atttypmod;
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

static void
describe_relation(PushRelation *rel, int64 schema_version, const char *deleted_column)
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
	rel->fields = syn_relation(rel->rel_no, schema_version);
	describe_columns(rel, RelationGetDescr(relation));
	if (deleted_column)
	{
		AttrNumber	attnum = get_attnum(rel->relid, deleted_column);

		if (attnum == InvalidAttrNumber)
			registration_moved();
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

/* Reads the registrations of the distinct relation numbers. */
static void
load_relations(PushBatch *batch, const int *rel_nos, int n)
{
	static const char sql[] =
	"SELECT a.rel_no, a.relation_oid, a.deleted_at_column FROM synchro.active_registration a"
	" WHERE a.kind OPERATOR(pg_catalog.=) 'synced' AND a.schema_version OPERATOR(pg_catalog.=) $1"
	" AND a.rel_no OPERATOR(pg_catalog.=) ANY ($2)";
	static const Oid types[] = {INT8OID, INT4ARRAYOID};
	Datum	   *elems = palloc(sizeof(Datum) * n);
	Datum		args[2];
	SPITupleTable *found;
	int			nfound;

	for (int i = 0; i < n; i++)
		elems[i] = Int32GetDatum(rel_nos[i]);
	args[0] = Int64GetDatum(batch->schema_version);
	args[1] = PointerGetDatum(construct_array(elems, n, INT4OID, sizeof(int32), true, TYPALIGN_INT));
	nfound = (int) push_exec(sql, 2, types, args, NULL);
	found = SPI_tuptable;
	batch->relations = palloc0(sizeof(PushRelation) * Max(nfound, 1));
	batch->nrelations = nfound;
	for (int i = 0; i < nfound; i++)
	{
		PushRelation *rel = &batch->relations[i];
		bool		no_deletion;
		Datum		deletion;

		SPI_tuptable = found;
		rel->rel_no = DatumGetInt32(push_column(i, 1, NULL));
		rel->relid = DatumGetObjectId(push_column(i, 2, NULL));
		deletion = push_column(i, 3, &no_deletion);
		describe_relation(rel, batch->schema_version, no_deletion ? NULL : NameStr(*DatumGetName(deletion)));
	}
	SPI_freetuptable(found);
}

static PushRelation *
find_relation(PushBatch *batch, int rel_no)
{
	for (int i = 0; i < batch->nrelations; i++)
		if (batch->relations[i].rel_no == rel_no)
			return &batch->relations[i];
	registration_moved();
	return NULL;
}

/* The key as a value of its column; a text that is not the canonical one of any value is refused. */
static bool
read_key(PushBatch *batch, void *subject)
{
	PushMutation *m = subject;
	PushRelation *rel = m->rel;
	PushColumn *column = rel->key;
	char	   *text;
	PushRow    *row;
	Oid			input;

	if (!syn_wire_to_text(column->field->type, column->typid, column->typmod, m->pk, &text) || !text)
		return false;
	if (!column->has_input)
	{
		getTypeInputInfo(column->typid, &input, &column->ioparam);
		fmgr_info_cxt(input, &column->input, batch->mcxt);
		column->has_input = true;
	}
	batch->application = true;	/* built-in types, but their errors are the mutation's */
	row = palloc0(sizeof(PushRow));
	row->rel = rel;
	row->key = InputFunctionCall(&column->input, text, column->ioparam, column->typmod);
	row->key_text = OutputFunctionCall(&rel->key_output, row->key);
	m->row = row;
	return strcmp(row->key_text, text) == 0;
}

/* One mutation of the request. */
static void
read_mutation(PushBatch *batch, PushMutation *m, const JcsNode *node)
{
	const JcsNode *base;
	const JcsNode *op;
	ErrorData  *error;
	bool		valid;

	push_require_shape(node);
	base = jcs_member(node, "base_version");
	op = jcs_member(node, "op");
	m->op = jcs_string_is(op, "insert") ? PUSH_INSERT : jcs_string_is(op, "update") ? PUSH_UPDATE : PUSH_DELETE;
	m->pk = jcs_member(node, "pk")->u.members[0].value;
	m->columns = jcs_member(node, "columns");
	m->base_version = base ? jcs_string_dup(base) : NULL;
	error = push_subtransaction(batch, read_key, m, &valid);
	if (error)
		push_error_outcome(error, batch->application, m);
	else if (!valid)
		push_reject(m, PUSH_VALIDATION_FAILED, "the key is not a canonical value of its type");
	if (m->code)
		m->row = NULL;
}

static int
compare_rows(const void *a, const void *b)
{
	return strcmp((*(PushRow *const *) a)->key_text, (*(PushRow *const *) b)->key_text);
}

/* Gives each relation its target rows, one per key. */
static void
gather_rows(PushBatch *batch, PushRelation *rel)
{
	rel->rows = palloc(sizeof(PushRow *) * batch->nmutations);
	for (int i = 0; i < batch->nmutations; i++)
		if (batch->mutations[i].rel == rel && batch->mutations[i].row)
			rel->rows[rel->nrows++] = batch->mutations[i].row;
	if (rel->nrows > 1)
	{
		int			n = 1;

		qsort(rel->rows, rel->nrows, sizeof(PushRow *), compare_rows);
		for (int i = 1; i < rel->nrows; i++)
			if (compare_rows(&rel->rows[i], &rel->rows[n - 1]) != 0)
				rel->rows[n++] = rel->rows[i];
		rel->nrows = n;
	}
	for (int i = 0; i < batch->nmutations; i++)
	{
		PushMutation *m = &batch->mutations[i];

		if (m->rel == rel && m->row)
			m->row = *(PushRow **) bsearch(&m->row, rel->rows, rel->nrows, sizeof(PushRow *), compare_rows);
	}
}

/*
 * mutations is the request's array. rel_nos and skip say per element which relation it writes, or that it is settled already. The
 * batch then holds the others only.
 */
void
push_prepare(PushBatch *batch, const char *mutations, const int *rel_nos, const bool *skip, int n)
{
	JcsError	error;
	JcsNode    *root = jcs_parse(mutations, strlen(mutations), 0, &error);
	int		   *wanted = palloc(sizeof(int) * Max(n, 1));
	int			nwanted = 0;

	if (!root || root->kind != JCS_ARRAY || root->len != n)
		elog(ERROR, "mutations don't match their classification");
	for (int i = 0; i < n; i++)
		if (!skip[i])
			wanted[nwanted++] = rel_nos[i];
	load_relations(batch, wanted, nwanted);
	batch->mutations = palloc0(sizeof(PushMutation) * Max(nwanted, 1));
	for (int i = 0; i < n; i++)
	{
		PushMutation *m = &batch->mutations[batch->nmutations];

		if (skip[i])
			continue;
		m->ord = i + 1;
		m->rel = find_relation(batch, rel_nos[i]);
		read_mutation(batch, m, root->u.items[i]);
		batch->nmutations++;
	}
	for (int i = 0; i < batch->nrelations; i++)
		gather_rows(batch, &batch->relations[i]);
}
