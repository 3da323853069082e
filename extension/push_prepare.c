/*
 * push_prepare.c
 *		From the request's mutations to relations, target rows and operations.
 *
 * The request's shape and what the manifests say of it are already checked (sql/functions/_push_classify.sql).
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "errcodes.h"
#include "push.h"

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
		push_describe(rel, batch->schema_version, no_deletion ? NULL : NameStr(*DatumGetName(deletion)));
	}
	SPI_freetuptable(found);
}

static PushRelation *
find_relation(PushBatch *batch, int rel_no)
{
	for (int i = 0; i < batch->nrelations; i++)
		if (batch->relations[i].rel_no == rel_no)
			return &batch->relations[i];
	push_registration_moved();
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

	m->row = NULL;
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

/* All keys at once. False, or an error: not every one is good. */
static bool
read_keys(PushBatch *batch, void *subject)
{
	for (int i = 0; i < batch->nmutations; i++)
		if (!read_key(batch, &batch->mutations[i]))
			return false;
	return true;
}

/* Gives every mutation its row, or its outcome. */
static void
resolve_keys(PushBatch *batch)
{
	bool		valid;
	ErrorData  *error = push_subtransaction(batch, read_keys, NULL, &valid);

	if (error && !push_error_is_outcome(error, batch->application))
		ReThrowError(error);
	for (int i = 0; !valid && i < batch->nmutations; i++)
	{
		PushMutation *m = &batch->mutations[i];
		bool		good;

		error = push_subtransaction(batch, read_key, m, &good);
		if (error)
			push_error_outcome(error, batch->application, m);
		else if (!good)
			push_reject(m, PUSH_VALIDATION_FAILED, "the key is not a canonical value of its type");
		if (m->code)
			m->row = NULL;
	}
}

/* One mutation of the request. */
static void
read_mutation(PushMutation *m, const JcsNode *node)
{
	const JcsNode *base;
	const JcsNode *op;

	push_require_shape(node);
	base = jcs_member(node, "base_version");
	op = jcs_member(node, "op");
	m->op = jcs_string_is(op, "insert") ? PUSH_INSERT : jcs_string_is(op, "update") ? PUSH_UPDATE : PUSH_DELETE;
	m->pk = jcs_member(node, "pk")->u.members[0].value;
	m->columns = jcs_member(node, "columns");
	m->base_version = base ? jcs_string_dup(base) : NULL;
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
push_prepare(PushBatch *batch, const JcsNode *mutations, const int *rel_nos, const bool *skip, int n)
{
	int		   *wanted = palloc(sizeof(int) * Max(n, 1));
	int			nwanted = 0;

	if (mutations->len != n)
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
		read_mutation(m, mutations->u.items[i]);
		batch->nmutations++;
	}
	resolve_keys(batch);
	for (int i = 0; i < batch->nrelations; i++)
		gather_rows(batch, &batch->relations[i]);
}
