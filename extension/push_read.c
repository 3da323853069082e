/*
 * push_read.c
 *		The parts of a push's mutations that SQL decides on, from one pass over the request.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/tuplestore.h"

#include "jcs.h"
#include "push.h"

PG_FUNCTION_INFO_V1(synchro_push_read);

enum
{
	READ_ORD,
	READ_MUTATION_ID,
	READ_TABLE_ID,
	READ_KEY_FIELD,
	READ_FIELDS,
	READ_AUTHORED_VERSION,
	READ_AUTHORED_HASH,
	READ_AUTHORED,
	READ_HEAD,
	READ_MUTATION,
	READ_COLUMNS
};

static bool
is_kind(const JcsNode *node, JcsKind kind)
{
	return node && node->kind == kind;
}

/* The shape is checked before any of this (_request, _batch_fingerprint); what is relied on here is not taken for granted. */
void
push_require_shape(const JcsNode *node)
{
	const JcsNode *pk;
	const JcsNode *authored;
	const JcsNode *columns;
	const JcsNode *op;

	if (is_kind(node, JCS_OBJECT))
	{
		pk = jcs_member(node, "pk");
		authored = jcs_member(node, "authored_schema");
		columns = jcs_member(node, "columns");
		op = jcs_member(node, "op");
		if (is_kind(jcs_member(node, "mutation_id"), JCS_STRING) && is_kind(jcs_member(node, "table"), JCS_STRING) &&
			is_kind(pk, JCS_OBJECT) && pk->len == 1 && is_kind(authored, JCS_OBJECT) && is_kind(jcs_member(authored, "hash"), JCS_STRING) &&
			is_kind(op, JCS_STRING) && (columns ? columns->kind == JCS_OBJECT : jcs_string_is(op, "delete")) &&
			(jcs_string_is(op, "insert") || is_kind(jcs_member(node, "base_version"), JCS_STRING)))
			return;
	}
	elog(ERROR, "a mutation's shape was not checked");
}

static Datum
string_text(const JcsNode *node)
{
	return PointerGetDatum(cstring_to_text_with_len(node->u.str, node->len));
}

static Datum
raw_text(const JcsNode *node)
{
	return PointerGetDatum(cstring_to_text_with_len(node->raw, node->rawlen));
}

/* Names of an object's members as text[]. */
static Datum
member_names(const JcsNode *object)
{
	int			n = object ? object->len : 0;
	Datum	   *names = palloc(sizeof(Datum) * Max(n, 1));

	for (int i = 0; i < n; i++)
		names[i] = PointerGetDatum(cstring_to_text_with_len(object->u.members[i].name, object->u.members[i].namelen));
	return PointerGetDatum(construct_array(names, n, TEXTOID, -1, false, TYPALIGN_INT));
}

/* What every outcome begins with: the mutation's identity as the client spelled it. */
static Datum
outcome_head(const JcsNode *id, const JcsNode *table, const JcsNode *pk)
{
	StringInfoData head;

	initStringInfo(&head);
	appendStringInfoString(&head, "{\"mutation_id\":");
	appendBinaryStringInfo(&head, id->raw, id->rawlen);
	appendStringInfoString(&head, ",\"table\":");
	appendBinaryStringInfo(&head, table->raw, table->rawlen);
	appendStringInfoString(&head, ",\"pk\":");
	appendBinaryStringInfo(&head, pk->raw, pk->rawlen);
	return PointerGetDatum(cstring_to_text_with_len(head.data, head.len));
}

static void
read_mutation(const JcsNode *node, Datum *values)
{
	const JcsNode *id;
	const JcsNode *table;
	const JcsNode *pk;
	const JcsNode *authored;
	int64		version;

	push_require_shape(node);
	id = jcs_member(node, "mutation_id");
	table = jcs_member(node, "table");
	pk = jcs_member(node, "pk");
	authored = jcs_member(node, "authored_schema");
	if (!jcs_integer(jcs_member(authored, "version"), &version))
		elog(ERROR, "a mutation's shape was not checked");
	values[READ_MUTATION_ID] = DirectFunctionCall1(uuid_in, CStringGetDatum(jcs_string_dup(id)));
	values[READ_TABLE_ID] = string_text(table);
	values[READ_KEY_FIELD] = PointerGetDatum(cstring_to_text_with_len(pk->u.members[0].name, pk->u.members[0].namelen));
	values[READ_FIELDS] = member_names(jcs_member(node, "columns"));
	values[READ_AUTHORED_VERSION] = Int64GetDatum(version);
	values[READ_AUTHORED_HASH] = string_text(jcs_member(authored, "hash"));
	values[READ_AUTHORED] = raw_text(authored);
	values[READ_HEAD] = outcome_head(id, table, pk);
	values[READ_MUTATION] = raw_text(node);
}

/* _push_read(mutations text): ord, mutation_id, table_id, key_field, fields, authored_version, authored_hash, authored, head, mutation. */
Datum
synchro_push_read(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	char	   *mutations = text_to_cstring(PG_GETARG_TEXT_PP(0));
	JcsError	error;
	JcsNode    *root = jcs_parse(mutations, strlen(mutations), 0, &error);
	bool		nulls[READ_COLUMNS] = {false};
	Datum		values[READ_COLUMNS];

	if (!root || root->kind != JCS_ARRAY)
		elog(ERROR, "a push's shape was not checked");
	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < root->len; i++)
	{
		values[READ_ORD] = Int32GetDatum(i + 1);
		read_mutation(root->u.items[i], values);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}
