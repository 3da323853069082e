/*
 * canonical_verify.c
 *		The same bytes from wire JSON and a manifest body alone, as a client computes them: for checking what was sent or stored.
 */
#include "postgres.h"

#include "compat.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "canonical_manifest.h"
#include "canonical_scope.h"
#include "errcodes.h"

static const char identity_domain[] = "synchro:v3:row-identity:v1";

pg_noreturn static void
refuse(const char *what)
{
	ereport(ERROR,
			(errcode(SYNCHRO_ERR_INVALID_PARAMETER),
			 errmsg("no canonical form"),
			 errdetail("Refused: %s.", what)));
}

static JcsNode *
parse_argument(FunctionCallInfo fcinfo, int arg)
{
	char	   *str = TextDatumGetCString(PG_GETARG_DATUM(arg));
	JcsError	error;
	JcsNode    *node = jcs_parse(str, strlen(str), 0, &error);

	if (!node)
		refuse(jcs_error_text(error));
	return node;
}

static Datum
bytea_result(const void *data, int len)
{
	PG_RETURN_BYTEA_P((bytea *) cstring_to_text_with_len(data, len));
}

/* A field as a manifest describes it; the ids may be absent. */
static void
read_field(const JcsNode *node, SynField *field)
{
	JcsNode    *type = jcs_member(node, "type");
	JcsNode    *nullable = jcs_member(node, "nullable");
	int64		precision = -1;
	int64		scale = 0;

	MemSet(field, 0, sizeof(*field));
	if (!type || type->kind != JCS_STRING || !nullable ||
		!syn_type_by_name(type->u.str, type->len, &field->type))
		refuse("malformed field");
	field->nullable = nullable->kind == JCS_TRUE;
	if (jcs_member(node, "precision") &&
		(!jcs_integer(jcs_member(node, "precision"), &precision) || !jcs_integer(jcs_member(node, "scale"), &scale)))
		refuse("malformed field");
	field->precision = (int) precision;
	field->scale = (int) scale;
}

static void
read_value(const SynField *field, const JcsNode *node, SynValue *out)
{
	if (!syn_from_wire(field->type, field->precision, field->scale, node, out))
		refuse("a value is not in canonical wire form");
	if (out->isnull && !field->nullable)
		refuse("null in a field that is not nullable");
}

/* Arguments 0 and 1: manifest body and table id. */
static SynRelation *
read_relation(FunctionCallInfo fcinfo)
{
	char	   *str = TextDatumGetCString(PG_GETARG_DATUM(0));
	char	   *table_id = text_to_cstring(PG_GETARG_TEXT_PP(1));
	SynRelation *rel = palloc0(sizeof(SynRelation));
	JcsNode    *tables = jcs_member(syn_manifest_parse(str, strlen(str), rel->schema_hash), "tables");
	JcsNode    *table = NULL;
	JcsNode    *fields;

	for (int i = 0; i < tables->len; i++)
		if (jcs_string_is(jcs_member(tables->u.items[i], "table_id"), table_id))
			table = tables->u.items[i];
	if (!table)
		refuse("the manifest lacks the table");

	fields = jcs_member(table, "fields");
	rel->table_id = table_id;
	rel->nfields = fields->len;
	rel->fields = palloc(sizeof(SynField) * fields->len);
	for (int i = 0; i < fields->len; i++)
	{
		read_field(fields->u.items[i], &rel->fields[i]);
		rel->fields[i].field_id = jcs_string_dup(jcs_member(fields->u.items[i], "field_id"));
		if (jcs_string_is(jcs_member(table, "primary_key_field_id"), rel->fields[i].field_id))
			rel->key = i;
	}
	syn_relation_finish(rel);
	return rel;
}

/* _typed_value(p_field json, p_value json): typed_value of a wire value; p_field as in a manifest. */
PG_FUNCTION_INFO_V1(synchro_typed_value);
Datum
synchro_typed_value(PG_FUNCTION_ARGS)
{
	SynField	field;
	SynValue	value;
	StringInfoData out;

	read_field(parse_argument(fcinfo, 0), &field);
	read_value(&field, parse_argument(fcinfo, 1), &value);
	initStringInfo(&out);
	syn_append_typed(&out, &value);
	return bytea_result(out.data, out.len);
}

/* _verify_identity(p_manifest json, p_table_id text, p_key json) */
PG_FUNCTION_INFO_V1(synchro_verify_identity);
Datum
synchro_verify_identity(PG_FUNCTION_ARGS)
{
	SynRelation *rel = read_relation(fcinfo);
	SynValue	key;
	StringInfoData out;

	read_value(&rel->fields[rel->key], parse_argument(fcinfo, 2), &key);
	initStringInfo(&out);
	syn_append_identity(&out, rel, &key);
	return bytea_result(out.data, out.len);
}

/* _verify_row_digest(p_manifest json, p_table_id text, p_key json, p_row json, p_server_version text) */
PG_FUNCTION_INFO_V1(synchro_verify_row_digest);
Datum
synchro_verify_row_digest(PG_FUNCTION_ARGS)
{
	SynRelation *rel = read_relation(fcinfo);
	JcsNode    *row = parse_argument(fcinfo, 3);
	text	   *version = PG_GETARG_TEXT_PP(4);
	SynValue   *values = palloc(sizeof(SynValue) * rel->nfields);
	SynValue	key;
	StringInfoData a;
	StringInfoData b;
	uint8		digest[SYN_HASH_LEN];

	if (row->kind != JCS_OBJECT || row->len != rel->nfields)
		refuse("a row has every field once");
	for (int i = 0; i < rel->nfields; i++)
	{
		JcsNode    *node = jcs_member(row, rel->fields[i].field_id);

		if (!node)
			refuse("a row has every field once");
		read_value(&rel->fields[i], node, &values[i]);
	}
	if (VARSIZE_ANY_EXHDR(version) == 0)
		refuse("empty server version");

	read_value(&rel->fields[rel->key], parse_argument(fcinfo, 2), &key);
	initStringInfo(&a);
	initStringInfo(&b);
	syn_append_typed(&a, &key);
	syn_append_typed(&b, &values[rel->key]);
	if (a.len != b.len || memcmp(a.data, b.data, a.len) != 0)
		refuse("the row has another key");

	syn_row_digest(rel, values, VARDATA_ANY(version), VARSIZE_ANY_EXHDR(version), &a, digest);
	return bytea_result(digest, SYN_HASH_LEN);
}

/* Takes a blob from an identity. */
static bool
skip_blob(const unsigned char **s, const unsigned char *end)
{
	uint64		len = 0;

	if (end - *s < 8)
		return false;
	for (int i = 0; i < 8; i++)
		len = len << 8 | *(*s)++;
	if (len > (uint64) (end - *s))
		return false;
	*s += len;
	return true;
}

/* Exactly one row_identity with a key type. */
static bool
identity_ok(const bytea *identity)
{
	const unsigned char *s = (const unsigned char *) VARDATA_ANY(identity);
	const unsigned char *end = s + VARSIZE_ANY_EXHDR(identity);

	if (end - s < (ptrdiff_t) sizeof(identity_domain) || memcmp(s, identity_domain, sizeof(identity_domain)) != 0)
		return false;
	s += sizeof(identity_domain);
	if (!skip_blob(&s, end) || !skip_blob(&s, end) || end - s < 2 || s[1] != 1)
		return false;
	s += 2;
	switch (s[-2])
	{
		case SYN_STRING:
			return skip_blob(&s, end) && s == end;
		case SYN_INT:
			return end - s == 4;
		case SYN_INT64:
			return end - s == 8;
		default:
			return false;
	}
}

typedef struct Entry
{
	bytea	   *identity;
	bytea	   *digest;
} Entry;

static int
compare_entries(const void *a, const void *b)
{
	const bytea *x = ((const Entry *) a)->identity;
	const bytea *y = ((const Entry *) b)->identity;
	int			order = memcmp(VARDATA_ANY(x), VARDATA_ANY(y), Min(VARSIZE_ANY_EXHDR(x), VARSIZE_ANY_EXHDR(y)));

	return order != 0 ? order : (int) VARSIZE_ANY_EXHDR(x) - (int) VARSIZE_ANY_EXHDR(y);
}

/* _verify_scope_digest(p_schema_hash text, p_scope_id text, p_identities bytea[], p_digests bytea[]) */
PG_FUNCTION_INFO_V1(synchro_verify_scope_digest);
Datum
synchro_verify_scope_digest(PG_FUNCTION_ARGS)
{
	text	   *hex = PG_GETARG_TEXT_PP(0);
	text	   *scope_id = PG_GETARG_TEXT_PP(1);
	Datum	   *identities;
	Datum	   *digests;
	int			n;
	int			ndigests;
	uint8		schema_hash[SYN_HASH_LEN];
	Entry	   *entries;
	SynScopeHash hash;

	if (!syn_parse_hash(VARDATA_ANY(hex), VARSIZE_ANY_EXHDR(hex), schema_hash))
		refuse("malformed schema hash");
	deconstruct_array(PG_GETARG_ARRAYTYPE_P(2), BYTEAOID, -1, false, TYPALIGN_INT, &identities, NULL, &n);
	deconstruct_array(PG_GETARG_ARRAYTYPE_P(3), BYTEAOID, -1, false, TYPALIGN_INT, &digests, NULL, &ndigests);
	if (n != ndigests)
		refuse("an entry has an identity and a digest");
	entries = palloc(sizeof(Entry) * Max(n, 1));
	for (int i = 0; i < n; i++)
	{
		entries[i].identity = DatumGetByteaPP(identities[i]);
		entries[i].digest = DatumGetByteaPP(digests[i]);
		if (!identity_ok(entries[i].identity) || VARSIZE_ANY_EXHDR(entries[i].digest) != SYN_HASH_LEN)
			refuse("malformed entry");
	}
	qsort(entries, n, sizeof(Entry), compare_entries);
	for (int i = 1; i < n; i++)
		if (compare_entries(&entries[i - 1], &entries[i]) == 0)
			refuse("an identity occurs twice");

	syn_scope_hash_begin(&hash, schema_hash, VARDATA_ANY(scope_id), VARSIZE_ANY_EXHDR(scope_id), n);
	for (int i = 0; i < n; i++)
	{
		StringInfo	buf = syn_scope_hash_entry(&hash);

		syn_append_blob(buf, VARDATA_ANY(entries[i].identity), VARSIZE_ANY_EXHDR(entries[i].identity));
		appendBinaryStringInfo(buf, VARDATA_ANY(entries[i].digest), SYN_HASH_LEN);
	}
	PG_RETURN_TEXT_P(cstring_to_text(syn_scope_hash_end(&hash)));
}
