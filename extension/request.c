/*
 * request.c
 *		Shape of the four requests: exact members, types and bounds, checked before anything else happens.
 *
 * Messages name members of our own tables only, never what the client sent.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "compat.h"
#include "errcodes.h"
#include "jcs.h"
#include "request.h"
#include "semver.h"

#define PROTOCOL_VERSION 3
#define BODY_MAX 1048576
#define ECHO_MAX 256			/* of a schema reference that is answered as it came */

PG_FUNCTION_INFO_V1(synchro_request);
PG_FUNCTION_INFO_V1(synchro_request_client);

static const Member connect_members[] = {
	{"app_version", check_version, true},
	{"client_generation", check_positive, false},
	{"client_id", check_id, true},
	{"known_scopes", check_cursors, true},
	{"platform", check_id, true},
	{"protocol_version", check_positive, true},
	{"schema", check_anything, true},	/* answered by its own error */
	{"schema_reset", check_boolean, false},
	{"scope_set_version", check_counter, true},
	{"seed_receipts", check_receipts, false},
	{NULL}
};

/* What is inside the mutations is for their fingerprint to check, which every push needs before it goes on (canonical_push.c). */
static const Member push_members[] = {
	{"atomic", check_true, false},
	{"batch_id", check_uuid, true},
	{"client_generation", check_positive, false},
	{"client_id", check_id, true},
	{"mutations", check_mutations, true},
	{"schema", check_schema, true},
	{NULL}
};

static const Member pull_members[] = {
	{"client_generation", check_positive, false},
	{"client_id", check_id, true},
	{"limit", check_limit, true},
	{"schema", check_schema, true},
	{"scope_set_version", check_counter, true},
	{"scopes", check_cursors, true},
	{NULL}
};

static const Member rebuild_members[] = {
	{"client_generation", check_positive, false},
	{"client_id", check_id, true},
	{"cursor", check_cursor, true},
	{"limit", check_limit, true},
	{"rebuild_id", check_uuid, true},
	{"schema", check_schema, true},
	{"scope", check_text, true},
	{NULL}
};

static const struct
{
	const char *name;
	const Member *members;
}			request_kinds[] =
{
	{"connect", connect_members},
	{"push", push_members},
	{"pull", pull_members},
	{"rebuild", rebuild_members},
};

/* Raises invalid_request; both arguments are constants of ours. */
void
refuse_request(const char *member, const char *rule)
{
	ereport(ERROR,
			(errcode(SYNCHRO_ERR_INVALID_REQUEST),
			 errmsg("invalid request"),
			 member ? errdetail_internal("{\"message\":\"invalid request: %s: %s\"}", member, rule)
			 : errdetail_internal("{\"message\":\"invalid request: %s\"}", rule)));
}

/* The last request of this transaction. */
static struct
{
	MemoryContext context;		/* NULL: none */
	char	   *text;
	int			len;
	JcsNode    *root;
}			parsed;

static void
forget_request(void *arg)
{
	parsed.context = NULL;
}

JcsNode *
parse_request(const text *request, JcsError *error)
{
	const char *data = VARDATA_ANY(request);
	int			len = VARSIZE_ANY_EXHDR(request);
	MemoryContextCallback *callback;
	MemoryContext caller;

	if (parsed.context && parsed.len == len && memcmp(parsed.text, data, len) == 0)
		return parsed.root;
	if (parsed.context)
		MemoryContextDelete(parsed.context);
	caller = MemoryContextSwitchTo(AllocSetContextCreate(TopTransactionContext, "synchro request", ALLOCSET_DEFAULT_SIZES));
	callback = palloc0(sizeof(MemoryContextCallback));
	callback->func = forget_request;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, callback);
	parsed.text = pnstrdup(data, len);
	parsed.len = len;
	parsed.root = jcs_parse(parsed.text, len, 0, error);
	if (parsed.root)
		parsed.context = CurrentMemoryContext;
	MemoryContextSwitchTo(caller);
	return parsed.root;
}

/* Exactly the members of the table, each of its type. */
void
check_members(const JcsNode *object, const Member *members)
{
	int			known = 0;

	if (object->kind != JCS_OBJECT)
		refuse_request(NULL, "an object is expected");
	for (const Member *m = members; m->name; m++)
	{
		const JcsNode *value = jcs_member(object, m->name);

		if (value == NULL)
		{
			if (m->required)
				refuse_request(m->name, "is missing");
			continue;
		}
		known++;
		m->check(value, m->name);
	}
	if (known != object->len)
		refuse_request(NULL, "an unknown member");
}

/* A connect of another protocol, or of a client below the minimum, is answered before its shape is looked at. */
static void
check_versions(const JcsNode *request)
{
	const JcsNode *version = jcs_member(request, "app_version");
	int64		protocol;

	if (jcs_integer(jcs_member(request, "protocol_version"), &protocol) && protocol != PROTOCOL_VERSION)
		ereport(ERROR,
				(errcode(SYNCHRO_ERR_UPGRADE_REQUIRED),
				 errmsg("upgrade required"),
				 errdetail_internal("{\"required_protocol_version\":%d,\"received_protocol_version\":" INT64_FORMAT "}",
									PROTOCOL_VERSION, protocol)));
	if (version && version->kind == JCS_STRING && !semver_at_least_minimum(version->u.str, version->len))
	{
		StringInfoData detail;

		initStringInfo(&detail);
		appendStringInfoString(&detail, "{\"minimum_client_version\":");
		jcs_append_string(&detail, semver_minimum, strlen(semver_minimum));
		appendStringInfoString(&detail, ",\"received_client_version\":");
		if (version->len <= ECHO_MAX)
			jcs_append_string(&detail, version->u.str, version->len);
		else
			appendStringInfoString(&detail, "null");
		appendStringInfoChar(&detail, '}');
		ereport(ERROR,
				(errcode(SYNCHRO_ERR_UPGRADE_REQUIRED),
				 errmsg("upgrade required"),
				 errdetail_internal("%s", detail.data)));
	}
}

/* Connect alone takes the fresh sentinel too, and answers a malformed reference by its own error. */
static void
check_connect_schema(const JcsNode *schema)
{
	if (is_schema_reference(schema, true))
		return;
	ereport(ERROR,
			(errcode(SYNCHRO_ERR_INVALID_SCHEMA_REFERENCE),
			 errmsg("invalid schema reference"),
			 errdetail_internal("{\"received_schema\":%s}",
								schema->rawlen <= ECHO_MAX ? pnstrdup(schema->raw, schema->rawlen) : "null")));
}

/* _request(kind text, request text) json: the request itself, or an error. */
Datum
synchro_request(PG_FUNCTION_ARGS)
{
	char	   *kind = text_to_cstring(PG_GETARG_TEXT_PP(0));
	text	   *request = PG_GETARG_TEXT_PP(1);
	const Member *members = NULL;
	JcsError	error;
	JcsNode    *root;

	for (int i = 0; i < (int) lengthof(request_kinds); i++)
		if (strcmp(request_kinds[i].name, kind) == 0)
			members = request_kinds[i].members;
	if (members == NULL)
		elog(ERROR, "no such kind of request");
	if (members == push_members && VARSIZE_ANY_EXHDR(request) > BODY_MAX)
		refuse_request(NULL, "the body is too large");

	root = parse_request(request, &error);
	if (root == NULL)
		refuse_request(NULL, jcs_error_text(error));
	if (root->kind != JCS_OBJECT)
		refuse_request(NULL, "an object is expected");
	if (members == connect_members)
		check_versions(root);
	check_members(root, members);
	if (members == connect_members)
		check_connect_schema(jcs_member(root, "schema"));
	PG_RETURN_TEXT_P(request);
}

/* _request_client(request text) text: the client id of a request whose shape is not checked yet, or NULL. */
Datum
synchro_request_client(PG_FUNCTION_ARGS)
{
	text	   *request = PG_GETARG_TEXT_PP(0);
	JcsError	error;
	JcsNode    *root = parse_request(request, &error);
	const JcsNode *id = root && root->kind == JCS_OBJECT ? jcs_member(root, "client_id") : NULL;

	if (id == NULL || id->kind != JCS_STRING)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text_with_len(id->u.str, id->len));
}
