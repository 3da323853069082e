/*
 * canonical_manifest.c
 *		Manifest bodies: rules, order, hash.
 */
#include "postgres.h"

#include "compat.h"

#include "utils/builtins.h"

#include "canonical_manifest.h"
#include "errcodes.h"

pg_noreturn static void
refuse(const char *what)
{
	ereport(ERROR,
			(errcode(SYNCHRO_ERR_INVALID_PARAMETER),
			 errmsg("malformed manifest"),
			 errdetail("Broken rule: %s.", what)));
}

static void
require(bool ok, const char *what)
{
	if (!ok)
		refuse(what);
}

static int
compare_nodes(const void *a, const void *b)
{
	const JcsNode *x = *(JcsNode *const *) a;
	const JcsNode *y = *(JcsNode *const *) b;
	int			order = memcmp(x->u.str, y->u.str, Min(x->len, y->len));

	return order != 0 ? order : x->len - y->len;
}

/* The member of every item is a non-empty string, and no two are equal. */
static void
require_unique(const JcsNode *array, const char *member)
{
	JcsNode   **texts = palloc(sizeof(JcsNode *) * Max(array->len, 1));

	for (int i = 0; i < array->len; i++)
	{
		texts[i] = jcs_member(array->u.items[i], member);
		require(texts[i]->kind == JCS_STRING && texts[i]->len > 0, "ids and names are non-empty strings");
	}
	qsort(texts, array->len, sizeof(JcsNode *), compare_nodes);
	for (int i = 1; i < array->len; i++)
		require(compare_nodes(&texts[i - 1], &texts[i]) != 0, "ids and names are unique");
}

static int
compare_by_member(const void *a, const void *b, void *member)
{
	JcsNode    *x = jcs_member(*(JcsNode *const *) a, member);
	JcsNode    *y = jcs_member(*(JcsNode *const *) b, member);

	return compare_nodes(&x, &y);
}

/* Unordered collections are hashed in the order of their ids. */
static void
sort_items(JcsNode *array, const char *member)
{
	qsort_arg(array->u.items, array->len, sizeof(JcsNode *), compare_by_member, unconstify(char *, member));
}

static JcsNode *
find_item(const JcsNode *array, const char *member, const JcsNode *text)
{
	for (int i = 0; i < array->len; i++)
	{
		JcsNode    *id = jcs_member(array->u.items[i], member);

		if (text->kind == JCS_STRING && compare_nodes(&id, &text) == 0)
			return array->u.items[i];
	}
	return NULL;
}

static bool
is_boolean(const JcsNode *node)
{
	return node->kind == JCS_TRUE || node->kind == JCS_FALSE;
}

static void
check_field(const JcsNode *node)
{
	static const char *const names[] = {"field_id", "name", "type", "nullable", "writable", "precision", "scale"};
	JcsNode    *part[7];
	SynType		type;
	int64		precision;
	int64		scale;

	require(jcs_shape(node, names, 5, 7, part), "members of a field");
	require(part[2]->kind == JCS_STRING && syn_type_by_name(part[2]->u.str, part[2]->len, &type), "type of a field");
	require(is_boolean(part[3]) && is_boolean(part[4]), "nullable and writable are boolean");
	if (part[5] || part[6])
		require(type == SYN_DECIMAL && jcs_integer(part[5], &precision) && jcs_integer(part[6], &scale) &&
				precision >= 1 && precision <= 1000 && scale >= -1000 && scale <= 1000,
				"precision and scale belong together, to a decimal, and are within bounds");
}

static void
check_key(const JcsNode *fields, const JcsNode *id)
{
	JcsNode    *key = find_item(fields, "field_id", id);

	require(key != NULL, "the primary key is a field");
	require(jcs_member(key, "nullable")->kind == JCS_FALSE && jcs_member(key, "writable")->kind == JCS_FALSE,
			"a primary key is neither nullable nor writable");
	require(jcs_string_is(jcs_member(key, "type"), "string") || jcs_string_is(jcs_member(key, "type"), "int") ||
			jcs_string_is(jcs_member(key, "type"), "int64"), "a primary key is string, int or int64");
}

static void
check_lifecycle(const JcsNode *fields, const JcsNode *lifecycle)
{
	static const char *const names[] = {"created_at_field_id", "updated_at_field_id", "deleted_at_field_id"};
	JcsNode    *part[3];

	require(jcs_shape(lifecycle, names, 3, 3, part), "members of lifecycle");
	for (int i = 0; i < 3; i++)
		require(part[i]->kind == JCS_NULL || find_item(fields, "field_id", part[i]), "lifecycle names fields");
}

static void
check_indexes(const JcsNode *fields, const JcsNode *indexes)
{
	static const char *const names[] = {"index_id", "name", "field_ids", "unique"};
	JcsNode    *part[4];

	for (int i = 0; i < indexes->len; i++)
	{
		require(jcs_shape(indexes->u.items[i], names, 4, 4, part), "members of an index");
		require(part[2]->kind == JCS_ARRAY && part[2]->len > 0, "an index has fields");
		require(is_boolean(part[3]), "unique is boolean");
		for (int f = 0; f < part[2]->len; f++)
			require(find_item(fields, "field_id", part[2]->u.items[f]) != NULL, "an index names fields");
	}
	require_unique(indexes, "index_id");
	require_unique(indexes, "name");
}

static void
check_table(const JcsNode *node)
{
	static const char *const names[] = {"table_id", "relation_id", "name", "composition", "primary_key_field_id",
		"lifecycle", "fields", "indexes"};
	JcsNode    *part[8];
	JcsNode    *fields;

	require(jcs_shape(node, names, 8, 8, part), "members of a table");
	require(jcs_string_is(part[3], "single_scope") || jcs_string_is(part[3], "multi_scope"), "composition");
	fields = part[6];
	require(fields->kind == JCS_ARRAY && part[7]->kind == JCS_ARRAY, "fields and indexes are arrays");
	for (int i = 0; i < fields->len; i++)
		check_field(fields->u.items[i]);
	require_unique(fields, "field_id");
	require_unique(fields, "name");
	check_key(fields, part[4]);
	check_lifecycle(fields, part[5]);
	check_indexes(fields, part[7]);
}

/*
 * The compatibility floor is the version of the first manifest of the current run of Class 2 steps; every other class starts a
 * run of its own.
 */
bool
syn_lineage_ok(int64 version, int64 parent, const char *class, int64 floor)
{
	bool		initial = strcmp(class, "initial") == 0;

	if (version < 1 || (parent == 0) != initial || parent < 0 || parent >= version)
		return false;
	if (strcmp(class, "class_2") == 0)
		return floor >= 1 && floor <= parent;
	return (initial || strcmp(class, "class_3") == 0 || strcmp(class, "class_4") == 0) && floor == version;
}

static void
check_lineage(JcsNode *const *part)
{
	static const char *const names[] = {"version", "hash"};
	JcsNode    *ref[2];
	int64		version;
	int64		floor;
	int64		parent = 0;
	uint8		hash[SYN_HASH_LEN];

	require(jcs_integer(part[0], &version) && jcs_integer(part[3], &floor) && part[2]->kind == JCS_STRING, "lineage");
	if (part[1]->kind != JCS_NULL)
		require(jcs_shape(part[1], names, 2, 2, ref) && jcs_integer(ref[0], &parent) && parent >= 1 &&
				ref[1]->kind == JCS_STRING && syn_parse_hash(ref[1]->u.str, ref[1]->len, hash), "parent_schema");
	require(syn_lineage_ok(version, parent, jcs_string_dup(part[2]), floor), "lineage");
}

JcsNode *
syn_manifest_parse(const char *str, int len, uint8 *hash)
{
	static const char *const names[] = {"schema_version", "parent_schema", "transition_class", "compatibility_floor",
		"tables", "schema_hash"};
	JcsNode    *part[6];
	JcsError	error;
	JcsNode    *body = jcs_parse(str, len, JCS_SAFE_NUMBERS, &error);
	StringInfoData out;
	uint8		claimed[SYN_HASH_LEN];

	if (!body)
		refuse(jcs_error_text(error));
	require(jcs_shape(body, names, 5, 6, part), "members of the body");
	check_lineage(part);
	require(part[4]->kind == JCS_ARRAY, "tables is an array");
	for (int i = 0; i < part[4]->len; i++)
		check_table(part[4]->u.items[i]);
	require_unique(part[4], "table_id");
	require_unique(part[4], "relation_id");
	require_unique(part[4], "name");

	sort_items(part[4], "table_id");
	for (int i = 0; i < part[4]->len; i++)
	{
		sort_items(jcs_member(part[4]->u.items[i], "fields"), "field_id");
		sort_items(jcs_member(part[4]->u.items[i], "indexes"), "index_id");
	}

	/* the hash is over the body without itself */
	if (part[5])
	{
		int			keep = 0;

		for (int i = 0; i < body->len; i++)
			if (body->u.members[i].value != part[5])
				body->u.members[keep++] = body->u.members[i];
		body->len = keep;
	}
	initStringInfo(&out);
	syn_append_domain(&out, "synchro:v3:schema-manifest:v1");
	jcs_append(&out, body);
	syn_sha256(out.data, out.len, hash);
	if (part[5])
		require(part[5]->kind == JCS_STRING && syn_parse_hash(part[5]->u.str, part[5]->len, claimed) &&
				memcmp(claimed, hash, SYN_HASH_LEN) == 0, "schema_hash is the hash of the body");
	return body;
}

/* _manifest_hash(p_body json) */
PG_FUNCTION_INFO_V1(synchro_manifest_hash);
Datum
synchro_manifest_hash(PG_FUNCTION_ARGS)
{
	char	   *str = TextDatumGetCString(PG_GETARG_DATUM(0));
	uint8		hash[SYN_HASH_LEN];

	syn_manifest_parse(str, strlen(str), hash);
	PG_RETURN_TEXT_P(cstring_to_text(syn_hash_hex(hash)));
}
