/*
 * canonical_push.c
 *		Fingerprints of push batches and mutations.
 *
 * A batch comes in one of two spellings: as requests travel, and in the list form that fingerprint test vectors use. Both are read
 * into one structure; only what is written from it is hashed.
 */
#include "postgres.h"

#include "compat.h"

#include "utils/builtins.h"

#include "canonical.h"
#include "errcodes.h"
#include "push.h"

#define MAX_MUTATIONS 1000
#define MAX_COLUMNS 256
#define MAX_MUTATION_SIZE 65536
#define MAX_BATCH_SIZE 1048576
#define MAX_USER_LENGTH 255

typedef struct Dialect
{
	const char *batch[6];		/* 5 required */
	const char *mutation[8];	/* 6 required */
	bool		listed;
} Dialect;

static const Dialect wire_dialect = {
	{"client_id", "client_generation", "batch_id", "schema", "mutations", "atomic"},
	{"mutation_id", "table", "pk", "authored_schema", "op", "client_version", "base_version", "columns"},
	false
};

static const Dialect list_dialect = {
	{"client_id", "client_generation", "batch_id", "request_schema", "mutations", "atomic"},
	{"mutation_id", "table_id", "pk", "authored_schema", "operation", "client_version", "base_version", "columns"},
	true
};

typedef struct Mutation
{
	JcsNode    *id;
	JcsNode    *table;
	JcsMember	key;
	JcsNode    *authored;
	JcsNode    *op;
	JcsNode    *client_version;
	JcsNode    *base;			/* NULL: insert */
	bool		has_columns;
	int			ncolumns;
	JcsMember  *columns;		/* by field id octets */
} Mutation;

pg_noreturn static void
refuse(const char *what)
{
	ereport(ERROR,
			(errcode(SYNCHRO_ERR_INVALID_REQUEST),
			 errmsg("invalid push request"),
			 errdetail("Refused: %s.", what)));
}

/* A non-empty string. */
static JcsNode *
name_node(JcsNode *node, const char *what)
{
	if (node->kind != JCS_STRING || node->len == 0)
		refuse(what);
	return node;
}

/* Lower case, hyphenated, not nil. */
static JcsNode *
uuid_node(JcsNode *node, const char *what)
{
	bool		zero = true;

	if (node->kind != JCS_STRING || node->len != 36)
		refuse(what);
	for (int i = 0; i < 36; i++)
	{
		char		c = node->u.str[i];

		if (i == 8 || i == 13 || i == 18 || i == 23)
		{
			if (c != '-')
				refuse(what);
			continue;
		}
		if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f'))
			refuse(what);
		zero = zero && c == '0';
	}
	if (zero)
		refuse(what);
	return node;
}

/* {"version": n > 0, "hash": 64 hex} */
static JcsNode *
schema_node(JcsNode *node, const char *what)
{
	static const char *const names[] = {"version", "hash"};
	JcsNode    *part[2];
	int64		version;
	uint8		hash[SYN_HASH_LEN];

	if (!jcs_shape(node, names, 2, 2, part) || !jcs_integer(part[0], &version) || version < 1 ||
		part[1]->kind != JCS_STRING || !syn_parse_hash(part[1]->u.str, part[1]->len, hash))
		refuse(what);
	return node;
}

/* {"field_id": ..., "value": ...} */
static JcsMember
read_pair(JcsNode *node, const char *what)
{
	static const char *const names[] = {"field_id", "value"};
	JcsNode    *part[2];
	JcsMember	member;

	if (!jcs_shape(node, names, 2, 2, part))
		refuse(what);
	name_node(part[0], what);
	member.name = part[0]->u.str;
	member.namelen = part[0]->len;
	member.value = part[1];
	return member;
}

static int
compare_octets(const JcsMember *a, const JcsMember *b)
{
	int			order = memcmp(a->name, b->name, Min(a->namelen, b->namelen));

	return order != 0 ? order : a->namelen - b->namelen;
}

static int
compare_columns(const void *a, const void *b)
{
	return compare_octets(a, b);
}

static void
read_columns(const Dialect *dialect, JcsNode *node, Mutation *out)
{
	if (node->kind != (dialect->listed ? JCS_ARRAY : JCS_OBJECT) || node->len > MAX_COLUMNS)
		refuse("columns");
	out->has_columns = true;
	out->ncolumns = node->len;
	out->columns = palloc(sizeof(JcsMember) * Max(node->len, 1));
	for (int i = 0; i < node->len; i++)
	{
		out->columns[i] = dialect->listed ? read_pair(node->u.items[i], "columns") : node->u.members[i];
		if (out->columns[i].namelen == 0)
			refuse("columns");
	}
	qsort(out->columns, out->ncolumns, sizeof(JcsMember), compare_columns);
	for (int i = 1; i < out->ncolumns; i++)
		if (compare_octets(&out->columns[i - 1], &out->columns[i]) == 0)
			refuse("columns");
}

/* insert: no base, columns. update: base, at least one column. delete: base, no columns. */
static void
check_op(const Mutation *m)
{
	bool		insert = jcs_string_is(m->op, "insert");
	bool		update = jcs_string_is(m->op, "update");

	if (!insert && !update && !jcs_string_is(m->op, "delete"))
		refuse("op");
	if ((m->base != NULL) == insert)
		refuse("base_version");
	if (m->has_columns != (insert || update) || (update && m->ncolumns == 0))
		refuse("columns");
}

static void
read_mutation(const Dialect *dialect, JcsNode *node, Mutation *out)
{
	JcsNode    *part[8];
	SynValue	version;

	MemSet(out, 0, sizeof(*out));
	if (!jcs_shape(node, dialect->mutation, 6, 8, part))
		refuse("mutation");
	out->id = uuid_node(part[0], "mutation_id");
	out->table = name_node(part[1], "table");
	if (dialect->listed)
		out->key = read_pair(part[2], "pk");
	else
	{
		if (part[2]->kind != JCS_OBJECT || part[2]->len != 1 || part[2]->u.members[0].namelen == 0)
			refuse("pk");
		out->key = part[2]->u.members[0];
	}
	out->authored = schema_node(part[3], "authored_schema");
	out->op = part[4];
	out->client_version = part[5];
	if (part[5]->kind == JCS_NULL || !syn_from_wire(SYN_DATETIME, -1, 0, part[5], &version))
		refuse("client_version");
	if (part[6])
		out->base = name_node(part[6], "base_version");
	if (part[7])
		read_columns(dialect, part[7], out);
	check_op(out);
}

static void
append_schema(StringInfo out, const JcsNode *schema)
{
	int64		version;

	(void) jcs_integer(jcs_member(schema, "version"), &version);
	appendStringInfo(out, "[\"" INT64_FORMAT "\",", version);
	jcs_append(out, jcs_member(schema, "hash"));
	appendStringInfoChar(out, ']');
}

static void
append_pair(StringInfo out, const JcsMember *pair)
{
	appendStringInfoChar(out, '[');
	jcs_append_string(out, pair->name, pair->namelen);
	appendStringInfoChar(out, ',');
	jcs_append(out, pair->value);
	appendStringInfoChar(out, ']');
}

static void
append_mutation(StringInfo out, const Mutation *m)
{
	int			start = out->len;

	appendStringInfoString(out, "[\"mutation-v1\",");
	jcs_append(out, m->id);
	appendStringInfoChar(out, ',');
	jcs_append(out, m->table);
	appendStringInfoChar(out, ',');
	append_pair(out, &m->key);
	appendStringInfoChar(out, ',');
	append_schema(out, m->authored);
	appendStringInfoChar(out, ',');
	jcs_append(out, m->op);
	if (m->base)
	{
		appendStringInfoString(out, ",[1,");
		jcs_append(out, m->base);
		appendStringInfoString(out, "],");
	}
	else
		appendStringInfoString(out, ",[0],");
	jcs_append(out, m->client_version);
	if (m->has_columns)
	{
		appendStringInfoString(out, ",[1,[");
		for (int i = 0; i < m->ncolumns; i++)
		{
			if (i > 0)
				appendStringInfoChar(out, ',');
			append_pair(out, &m->columns[i]);
		}
		appendStringInfoString(out, "]]]");
	}
	else
		appendStringInfoString(out, ",[0]]");
	if (out->len - start > MAX_MUTATION_SIZE)
		refuse("mutation is too large");
}

static int
compare_text(const void *a, const void *b)
{
	const StringInfoData *x = a;
	const StringInfoData *y = b;
	int			order = memcmp(x->data, y->data, Min(x->len, y->len));

	return order != 0 ? order : x->len - y->len;
}

/* Refuses a repeated mutation id and, in an atomic batch, a row that is written twice, however its key is spelled. */
static void
check_unique(const Mutation *mutations, int n, bool atomic)
{
	StringInfoData *texts = palloc(sizeof(StringInfoData) * n);

	for (int rows = 0; rows <= (atomic ? 1 : 0); rows++)
	{
		for (int i = 0; i < n; i++)
		{
			initStringInfo(&texts[i]);
			jcs_append(&texts[i], rows ? mutations[i].table : mutations[i].id);
			if (rows)
				jcs_append(&texts[i], mutations[i].key.value);
		}
		qsort(texts, n, sizeof(StringInfoData), compare_text);
		for (int i = 1; i < n; i++)
			if (compare_text(&texts[i - 1], &texts[i]) == 0)
				refuse(rows ? "an atomic batch writes a row twice" : "a mutation_id occurs twice");
	}
}

/* The limit on a body holds for its canonical form too, which is at most six times as long. */
static void
check_size(const JcsNode *node)
{
	StringInfoData out;

	if (node->rawlen <= MAX_BATCH_SIZE / 6)
		return;
	initStringInfo(&out);
	jcs_append(&out, node);
	if (out.len > MAX_BATCH_SIZE)
		refuse("batch is too large");
	pfree(out.data);
}

static void
append_batch(StringInfo out, const Dialect *dialect, JcsNode *node, const char *user)
{
	JcsNode    *part[6];
	int64		generation;
	Mutation   *mutations;
	int			n;

	if (!jcs_shape(node, dialect->batch, 5, 6, part))
		refuse("batch");
	name_node(part[0], "client_id");
	if (!jcs_integer(part[1], &generation) || generation < 1)
		refuse("client_generation");
	uuid_node(part[2], "batch_id");
	schema_node(part[3], "schema");
	if (part[4]->kind != JCS_ARRAY || part[4]->len < 1 || part[4]->len > MAX_MUTATIONS)
		refuse("mutations");
	if (part[5] && part[5]->kind != JCS_TRUE)
		refuse("atomic");

	n = part[4]->len;
	mutations = palloc(sizeof(Mutation) * n);
	for (int i = 0; i < n; i++)
		read_mutation(dialect, part[4]->u.items[i], &mutations[i]);
	check_unique(mutations, n, part[5] != NULL);

	appendStringInfoString(out, part[5] ? "[\"atomic-batch-v1\"," : "[\"batch-v1\",");
	jcs_append_string(out, user, strlen(user));
	appendStringInfoChar(out, ',');
	jcs_append(out, part[0]);
	appendStringInfo(out, ",\"" INT64_FORMAT "\",", generation);
	jcs_append(out, part[2]);
	appendStringInfoChar(out, ',');
	append_schema(out, part[3]);
	appendStringInfoString(out, ",[");
	for (int i = 0; i < n; i++)
	{
		if (i > 0)
			appendStringInfoChar(out, ',');
		append_mutation(out, &mutations[i]);
	}
	appendStringInfoString(out, "]]");
}

static JcsNode *
parse_json(FunctionCallInfo fcinfo, int arg)
{
	char	   *str = TextDatumGetCString(PG_GETARG_DATUM(arg));
	JcsError	error;
	JcsNode    *node = jcs_parse(str, strlen(str), 0, &error);

	if (!node)
		refuse(jcs_error_text(error));
	return node;
}

static char *
id_argument(FunctionCallInfo fcinfo, int arg, int limit, const char *what)
{
	char	   *str = text_to_cstring(PG_GETARG_TEXT_PP(arg));
	size_t		len = strlen(str);

	if (len == 0 || len > (size_t) limit || !syn_text_ok(str, len))
		refuse(what);
	return str;
}

static Datum
hash_result(StringInfo input)
{
	uint8		hash[SYN_HASH_LEN];

	syn_sha256(input->data, input->len, hash);
	PG_RETURN_BYTEA_P((bytea *) cstring_to_text_with_len((char *) hash, SYN_HASH_LEN));
}

static Datum
hash_batch(const Dialect *dialect, JcsNode *node, const char *user)
{
	StringInfoData out;

	check_size(node);
	initStringInfo(&out);
	syn_append_domain(&out, "synchro:v3:push-batch-fingerprint:v1");
	append_batch(&out, dialect, node, user);
	return hash_result(&out);
}

static Datum
hash_mutation(const Dialect *dialect, JcsNode *node, const char *user, const char *client, int client_len)
{
	Mutation	mutation;
	StringInfoData out;
	Datum		hash;

	read_mutation(dialect, node, &mutation);
	initStringInfo(&out);
	syn_append_domain(&out, "synchro:v3:push-mutation-fingerprint:v1");
	appendStringInfoString(&out, "[\"mutation-scope-v1\",");
	jcs_append_string(&out, user, strlen(user));
	appendStringInfoChar(&out, ',');
	jcs_append_string(&out, client, client_len);
	appendStringInfoChar(&out, ',');
	append_mutation(&out, &mutation);
	appendStringInfoChar(&out, ']');
	hash = hash_result(&out);
	pfree(out.data);
	return hash;
}

Datum
syn_batch_fingerprint(JcsNode *request, const char *user)
{
	return hash_batch(&wire_dialect, request, user);
}

Datum
syn_mutation_fingerprint(JcsNode *mutation, const char *user, const JcsNode *client)
{
	return hash_mutation(&wire_dialect, mutation, user, client->u.str, client->len);
}

/* _batch_fingerprint(p_user text, p_batch json, p_listed boolean) */
PG_FUNCTION_INFO_V1(synchro_batch_fingerprint);
Datum
synchro_batch_fingerprint(PG_FUNCTION_ARGS)
{
	char	   *user = id_argument(fcinfo, 0, MAX_USER_LENGTH, "user");

	return hash_batch(PG_GETARG_BOOL(2) ? &list_dialect : &wire_dialect, parse_json(fcinfo, 1), user);
}

/* _mutation_fingerprint(p_user text, p_client text, p_mutation json, p_listed boolean) */
PG_FUNCTION_INFO_V1(synchro_mutation_fingerprint);
Datum
synchro_mutation_fingerprint(PG_FUNCTION_ARGS)
{
	char	   *user = id_argument(fcinfo, 0, MAX_USER_LENGTH, "user");
	char	   *client = id_argument(fcinfo, 1, PG_INT32_MAX, "client_id");

	return hash_mutation(PG_GETARG_BOOL(3) ? &list_dialect : &wire_dialect, parse_json(fcinfo, 2), user, client, strlen(client));
}
