/*
 * push_read.c
 *		The parts of a push that SQL decides on.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/tuplestore.h"
#include "utils/uuid.h"

#include "jcs.h"
#include "push.h"
#include "request.h"

PG_FUNCTION_INFO_V1(synchro_push_request);
PG_FUNCTION_INFO_V1(synchro_push_read);
PG_FUNCTION_INFO_V1(synchro_push_shapes);

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

static Datum
uuid_value(const JcsNode *node)
{
	return DirectFunctionCall1(uuid_in, CStringGetDatum(jcs_string_dup(node)));
}

/* The tree of a request whose envelope is checked. */
static JcsNode *
request_tree(const text *request)
{
	JcsError	error;
	JcsNode    *root = parse_request(request, &error);

	if (!is_kind(root, JCS_OBJECT) || !is_kind(jcs_member(root, "mutations"), JCS_ARRAY) || !is_kind(jcs_member(root, "client_id"), JCS_STRING))
		elog(ERROR, "a push's shape was not checked");
	return root;
}

const JcsNode *
push_mutations(const text *request)
{
	return jcs_member(request_tree(request), "mutations");
}

static bool
same_string(const JcsNode *a, const JcsNode *b)
{
	return a->len == b->len && memcmp(a->u.str, b->u.str, a->len) == 0;
}

static bool
same_names(const JcsNode *a, const JcsNode *b)
{
	int			n = a ? a->len : 0;

	if (n != (b ? b->len : 0))
		return false;
	for (int i = 0; i < n; i++)
		if (a->u.members[i].namelen != b->u.members[i].namelen ||
			memcmp(a->u.members[i].name, b->u.members[i].name, a->u.members[i].namelen) != 0)
			return false;
	return true;
}

/* Do both write the same fields of the same table, and were they authored under the same manifest? Members are in one order. */
static bool
same_shape(const JcsNode *a, const JcsNode *b)
{
	const JcsNode *authored_a = jcs_member(a, "authored_schema");
	const JcsNode *authored_b = jcs_member(b, "authored_schema");
	int64		version_a;
	int64		version_b;

	return same_string(jcs_member(a, "table"), jcs_member(b, "table")) && same_names(jcs_member(a, "pk"), jcs_member(b, "pk")) &&
		same_names(jcs_member(a, "columns"), jcs_member(b, "columns")) &&
		same_string(jcs_member(authored_a, "hash"), jcs_member(authored_b, "hash")) &&
		jcs_integer(jcs_member(authored_a, "version"), &version_a) && jcs_integer(jcs_member(authored_b, "version"), &version_b) &&
		version_a == version_b;
}

static uint32
hash_string(uint32 hash, const char *str, int len)
{
	return hash_combine(hash, hash_bytes((const unsigned char *) str, len));
}

static uint32
hash_names(uint32 hash, const JcsNode *object)
{
	for (int i = 0; object && i < object->len; i++)
		hash = hash_string(hash, object->u.members[i].name, object->u.members[i].namelen);
	return hash;
}

/* Equal for mutations of the same shape: a client may send as many shapes as mutations, and they must not all be compared in full. */
static uint32
shape_hash(const JcsNode *mutation)
{
	const JcsNode *table = jcs_member(mutation, "table");
	const JcsNode *authored = jcs_member(mutation, "authored_schema");
	const JcsNode *manifest = jcs_member(authored, "hash");
	uint32		hash = hash_names(hash_names(0, jcs_member(mutation, "pk")), jcs_member(mutation, "columns"));
	int64		version = 0;

	(void) jcs_integer(jcs_member(authored, "version"), &version);
	hash = hash_combine(hash, murmurhash32((uint32) version));
	return hash_string(hash_string(hash, table->u.str, table->len), manifest->u.str, manifest->len);
}

/* Numbers the shapes of the mutations, from 0, in order of appearance: shape_of[i], and in first the mutation that each was seen in. */
static int
number_shapes(const JcsNode *mutations, int *shape_of, int *first)
{
	uint32	   *hashes = palloc(sizeof(uint32) * Max(mutations->len, 1));	/* of the shapes */
	int			n = 0;

	for (int i = 0; i < mutations->len; i++)
	{
		int			shape = 0;
		uint32		hash;

		push_require_shape(mutations->u.items[i]);
		hash = shape_hash(mutations->u.items[i]);
		while (shape < n && (hashes[shape] != hash || !same_shape(mutations->u.items[first[shape]], mutations->u.items[i])))
			shape++;
		if (shape == n)
		{
			hashes[n] = hash;
			first[n++] = i;
		}
		shape_of[i] = shape;
	}
	return n;
}

/*
 * _push_request(user text, request text): batch_id, atomic, client_generation, schema, fingerprint, mutations. Without a
 * client_generation the last two are NULL, and what is in the mutations is not checked.
 */
Datum
synchro_push_request(PG_FUNCTION_ARGS)
{
	char	   *user = text_to_cstring(PG_GETARG_TEXT_PP(0));
	JcsNode    *root = request_tree(PG_GETARG_TEXT_PP(1));
	const JcsNode *mutations = jcs_member(root, "mutations");
	TupleDesc	desc;
	int64		generation;
	Datum		values[6] = {0};
	bool		nulls[6] = {false};

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	values[0] = uuid_value(jcs_member(root, "batch_id"));
	values[1] = BoolGetDatum(jcs_member(root, "atomic") != NULL);
	values[3] = raw_text(jcs_member(root, "schema"));
	if (jcs_integer(jcs_member(root, "client_generation"), &generation))
	{
		Datum	   *ids = palloc(sizeof(Datum) * Max(mutations->len, 1));

		values[2] = Int64GetDatum(generation);
		values[4] = syn_batch_fingerprint(root, user);
		for (int i = 0; i < mutations->len; i++)
			ids[i] = uuid_value(jcs_member(mutations->u.items[i], "mutation_id"));
		values[5] = PointerGetDatum(construct_array(ids, mutations->len, UUIDOID, UUID_LEN, false, TYPALIGN_CHAR));
	}
	else
		nulls[2] = nulls[4] = nulls[5] = true;
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(desc, values, nulls)));
}

/* _push_read(user text, request text): ord, shape, fingerprint, authored, head. */
Datum
synchro_push_read(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	char	   *user = text_to_cstring(PG_GETARG_TEXT_PP(0));
	JcsNode    *root = request_tree(PG_GETARG_TEXT_PP(1));
	const JcsNode *mutations = jcs_member(root, "mutations");
	int		   *shape_of = palloc(sizeof(int) * Max(mutations->len, 1));
	int		   *first = palloc(sizeof(int) * Max(mutations->len, 1));
	bool		nulls[5] = {false};
	Datum		values[5];

	InitMaterializedSRF(fcinfo, 0);
	(void) number_shapes(mutations, shape_of, first);
	for (int i = 0; i < mutations->len; i++)
	{
		JcsNode    *node = mutations->u.items[i];

		values[0] = Int32GetDatum(i + 1);
		values[1] = Int32GetDatum(shape_of[i]);
		values[2] = syn_mutation_fingerprint(node, user, jcs_member(root, "client_id"));
		values[3] = raw_text(jcs_member(node, "authored_schema"));
		values[4] = outcome_head(jcs_member(node, "mutation_id"), jcs_member(node, "table"), jcs_member(node, "pk"));
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/* _push_shapes(request text): shape, table_id, key_field, fields, authored_version, authored_hash. */
Datum
synchro_push_shapes(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	const JcsNode *mutations = push_mutations(PG_GETARG_TEXT_PP(0));
	int		   *shape_of = palloc(sizeof(int) * Max(mutations->len, 1));
	int		   *first = palloc(sizeof(int) * Max(mutations->len, 1));
	int			n = number_shapes(mutations, shape_of, first);
	bool		nulls[6] = {false};
	Datum		values[6];

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < n; i++)
	{
		const JcsNode *node = mutations->u.items[first[i]];
		const JcsNode *authored = jcs_member(node, "authored_schema");
		const JcsMember *key = &jcs_member(node, "pk")->u.members[0];
		int64		version;

		if (!jcs_integer(jcs_member(authored, "version"), &version))
			elog(ERROR, "a mutation's shape was not checked");
		values[0] = Int32GetDatum(i);
		values[1] = string_text(jcs_member(node, "table"));
		values[2] = PointerGetDatum(cstring_to_text_with_len(key->name, key->namelen));
		values[3] = member_names(jcs_member(node, "columns"));
		values[4] = Int64GetDatum(version);
		values[5] = string_text(jcs_member(authored, "hash"));
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}
