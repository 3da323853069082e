/*
 * fence_args.c
 *		Trigger arguments made ready for a query.
 *
 * Arguments hold attribute numbers of the registered relation. The trigger of a partition is a clone with the same arguments, while
 * the partition may number its columns in another way: there they are mapped by name.
 */
#include "postgres.h"

#include "catalog/partition.h"
#include "commands/trigger.h"
#include "libpq/pqformat.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/uuid.h"

#include "canonical.h"
#include "errcodes.h"
#include "fence.h"
#include "message.h"

/* The registered relation: the topmost ancestor with this trigger. */
static Oid
registered_root(Relation rel, const Trigger *trigger)
{
	Oid			root = RelationGetRelid(rel);
	ListCell   *cell;

	if (trigger->tgisclone)
		foreach(cell, get_partition_ancestors(root))
		{
			if (OidIsValid(get_trigger_oid(lfirst_oid(cell), trigger->tgname, true)))
				root = lfirst_oid(cell);
		}
	return root;
}

/* InvalidAttrNumber: the column was dropped. That is for the worker to see; writers go on. */
static AttrNumber
map_attno(Relation rel, Oid root, long attno)
{
	TupleDesc	desc = RelationGetDescr(rel);

	if (root != RelationGetRelid(rel))
	{
		char	   *name = get_attname(root, attno, true);

		attno = name ? get_attnum(RelationGetRelid(rel), name) : InvalidAttrNumber;
	}
	if (attno <= 0 || attno > desc->natts || TupleDescAttr(desc, attno - 1)->attisdropped)
		return InvalidAttrNumber;
	return attno;
}

/* Next number of a list; false at its end. */
static bool
next_number(const char **list, long *out)
{
	char	   *end;

	*out = strtol(*list, &end, 10);
	if (end == *list)
		return false;
	*list = end;
	return true;
}

static bool
listed(const char *list, long number)
{
	long		other;

	while (next_number(&list, &other))
		if (other == number)
			return true;
	return false;
}

static int
count_numbers(const char *list)
{
	int			n = 0;
	long		number;

	while (next_number(&list, &number))
		n++;
	return n;
}

static void
prepare_columns(Fence *fence, Relation rel, Oid root, const char *synced, const char *as_text, const char *required)
{
	long		number;

	fence->columns = palloc(sizeof(FenceColumn) * Max(count_numbers(synced), 1));
	while (next_number(&synced, &number))
	{
		FenceColumn *column = &fence->columns[fence->ncolumns];
		Form_pg_attribute att;
		bool		text = listed(as_text, number);
		SynType		type;

		column->attno = map_attno(rel, root, number);
		if (column->attno == InvalidAttrNumber)
			continue;
		fence->ncolumns++;
		att = TupleDescAttr(RelationGetDescr(rel), column->attno - 1);
		column->required = listed(required, number) && !att->attnotnull;
		column->byval = att->attbyval;
		column->len = att->attlen;
		column->codec = syn_portable_type(att->atttypid, text, &type) ? syn_codec(att->atttypid, type, text) : NULL;
		column->text_helps = !text && !(column->codec && type == SYN_STRING);
		fence->last_column = Max(fence->last_column, column->attno);
	}
}

static void
prepare_generated(Fence *fence, Relation rel, Oid root, const char *generated, MemoryContext context)
{
	long		number;

	fence->generated = palloc(sizeof(FenceGenerated) * Max(count_numbers(generated), 1));
	while (next_number(&generated, &number))
	{
		FenceGenerated *column = &fence->generated[fence->ngenerated];
		Oid			output;
		bool		varlena;

		column->root_attno = number;
		column->attno = map_attno(rel, root, number);
		if (column->attno == InvalidAttrNumber)
			continue;
		fence->ngenerated++;
		getTypeOutputInfo(TupleDescAttr(RelationGetDescr(rel), column->attno - 1)->atttypid, &output, &varlena);
		fmgr_info_cxt(output, &column->output, context);
	}
}

static void
append_uuid(StringInfo out, const char *str)
{
	pg_uuid_t  *uuid = DatumGetUUIDP(DirectFunctionCall1(uuid_in, CStringGetDatum(str)));

	appendBinaryStringInfo(out, (char *) uuid->data, UUID_LEN);
}

/* What all fences of the relation have in common, with room for what differs. */
static void
prepare_message(Fence *fence, char **args)
{
	StringInfo	m = &fence->message;
	const char *relation = args[FENCE_ARG_RELATION];

	message_begin(m);
	appendStringInfoChar(m, 0);	/* op */
	appendStringInfoChar(m, fence->kind);
	pq_sendint32(m, fence->rel_no);
	append_uuid(m, args[FENCE_ARG_RELATION_ID]);
	if (fence->kind == 's')
		append_uuid(m, args[FENCE_ARG_TABLE_ID]);
	fence->ordinal_at = m->len;
	appendStringInfoSpaces(m, 8 + UUID_LEN + 4 + SYN_VERSION_LEN);	/* ordinal, fence id, xmin, version */
	pq_sendint16(m, strlen(relation));
	appendBinaryStringInfo(m, relation, strlen(relation));
	fence->message_start = m->len;
}

Fence *
fence_prepare(Relation rel, const Trigger *trigger, MemoryContext context)
{
	MemoryContext caller = MemoryContextSwitchTo(context);
	Fence	   *fence = palloc0(sizeof(Fence));
	char	  **args = trigger->tgargs;
	Oid			root = registered_root(rel, trigger);
	Form_pg_attribute key;
	Oid			output;
	bool		varlena;

	if (trigger->tgnargs != FENCE_ARGS)
		elog(ERROR, "fence trigger has %d arguments instead of %d", trigger->tgnargs, FENCE_ARGS);
	fence->rel_no = atoi(args[FENCE_ARG_REL_NO]);
	fence->kind = args[FENCE_ARG_KIND][0];
	fence->partition = trigger->tgisclone;
	fence->key = map_attno(rel, root, atol(args[FENCE_ARG_KEY]));
	if (fence->key == InvalidAttrNumber)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("registered table %s has lost its key", RelationGetRelationName(rel)),
				 errhint("Unregister the table."),
				 errtable(rel)));
	key = TupleDescAttr(RelationGetDescr(rel), fence->key - 1);
	fence->key_byval = key->attbyval;
	fence->key_len = key->attlen;
	getTypeOutputInfo(key->atttypid, &output, &varlena);
	fmgr_info_cxt(output, &fence->key_output, context);
	prepare_columns(fence, rel, root, args[FENCE_ARG_SYNCED], args[FENCE_ARG_AS_TEXT], args[FENCE_ARG_REQUIRED]);
	prepare_generated(fence, rel, root, args[FENCE_ARG_GENERATED], context);
	prepare_message(fence, args);
	MemoryContextSwitchTo(caller);
	return fence;
}
