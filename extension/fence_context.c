/*
 * fence_context.c
 *		What fences know about their transaction: the push that it applies, whether its registration is complete, how many
 *		fences there were. One static struct, reset when the transaction ends.
 */
#include "postgres.h"

#include "access/xact.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "compat.h"
#include "errcodes.h"
#include "fence.h"

/* Begun in one subtransaction, perhaps ended in a deeper one: a rollback undoes whichever it covers. */
typedef struct PushContext
{
	struct PushContext *outer;
	SubTransactionId begun_in;
	SubTransactionId ended_in;	/* Invalid: in force */
	int64		client_no;
	char	   *user_id;
	Jsonb	   *claims;
} PushContext;

static struct
{
	bool		registered;		/* callbacks */
	PushContext *push;			/* in TopTransactionContext */
	SubTransactionId sealed_in;
	uint32		sequence;
}			state;

static void
transaction_ends(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			if (fence_pushed_count() > 0)
				elog(ERROR, "a push did not store its fences");
			break;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PREPARE:
			state.push = NULL;
			fence_pushed_forget();
			state.sealed_in = InvalidSubTransactionId;
			state.sequence = 0;
			break;
		default:
			break;
	}
}

static void
subtransaction_ends(SubXactEvent event, SubTransactionId subid, SubTransactionId parent, void *arg)
{
	SubTransactionId becomes;

	if (event != SUBXACT_EVENT_ABORT_SUB && event != SUBXACT_EVENT_COMMIT_SUB)
		return;
	if (event == SUBXACT_EVENT_ABORT_SUB)
		fence_pushed_undo(subid);
	while (event == SUBXACT_EVENT_ABORT_SUB && state.push && state.push->begun_in == subid)
		state.push = state.push->outer;
	becomes = event == SUBXACT_EVENT_COMMIT_SUB ? parent : InvalidSubTransactionId;
	for (PushContext *c = state.push; c; c = c->outer)
	{
		if (c->begun_in == subid)
			c->begun_in = becomes;
		if (c->ended_in == subid)
			c->ended_in = becomes;
	}
	if (state.sealed_in == subid)
		state.sealed_in = becomes;
}

static void
register_callbacks(void)
{
	if (state.registered)
		return;
	RegisterXactCallback(transaction_ends, NULL);
	RegisterSubXactCallback(subtransaction_ends, NULL);
	state.registered = true;
}

void
fence_push_begin(int64 client_no, const char *user_id, Jsonb *claims)
{
	MemoryContext caller;
	PushContext *context;

	register_callbacks();
	caller = MemoryContextSwitchTo(TopTransactionContext);
	context = palloc0(sizeof(PushContext));
	context->begun_in = GetCurrentSubTransactionId();
	context->client_no = client_no;
	context->user_id = pstrdup(user_id);
	if (claims)
	{
		context->claims = palloc(VARSIZE(claims));
		memcpy(context->claims, claims, VARSIZE(claims));
	}
	MemoryContextSwitchTo(caller);
	context->outer = state.push;
	state.push = context;
}

void
fence_push_end(void)
{
	if (fence_push_active())
		state.push->ended_in = GetCurrentSubTransactionId();
}

bool
fence_push_active(void)
{
	return state.push && state.push->ended_in == InvalidSubTransactionId;
}

bool
fence_sealed(void)
{
	return state.sealed_in != InvalidSubTransactionId;
}

uint32
fence_next_sequence(void)
{
	register_callbacks();
	return ++state.sequence;
}

PG_FUNCTION_INFO_V1(synchro_push_context);
PG_FUNCTION_INFO_V1(synchro_subject);
PG_FUNCTION_INFO_V1(synchro_subject_claim);
PG_FUNCTION_INFO_V1(synchro_seal_registration);

/* _push_context(client_no bigint, user_id text, claims jsonb) void; client_no NULL ends it and stores the fences. */
Datum
synchro_push_context(PG_FUNCTION_ARGS)
{
	if (PG_ARGISNULL(0))
	{
		fence_push_end();
		fence_pushed_store();
	}
	else if (PG_ARGISNULL(1))
		ereport(ERROR, (errcode(SYNCHRO_ERR_INVALID_PARAMETER), errmsg("a push has a user")));
	else
		fence_push_begin(PG_GETARG_INT64(0), text_to_cstring(PG_GETARG_TEXT_PP(1)),
						 PG_ARGISNULL(2) ? NULL : PG_GETARG_JSONB_P(2));
	PG_RETURN_VOID();
}

/* synchro_subject() text: the user whose push is being applied; NULL outside a push. */
Datum
synchro_subject(PG_FUNCTION_ARGS)
{
	if (!fence_push_active())
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(state.push->user_id));
}

/* synchro_subject(claim text) jsonb: a claim of that user's token; NULL when there is none. */
Datum
synchro_subject_claim(PG_FUNCTION_ARGS)
{
	text	   *name = PG_GETARG_TEXT_PP(0);
	JsonbValue	key;
	JsonbValue *value;

	if (!fence_push_active() || !state.push->claims || !JB_ROOT_IS_OBJECT(state.push->claims))
		PG_RETURN_NULL();
	key.type = jbvString;
	key.val.string.val = VARDATA_ANY(name);
	key.val.string.len = VARSIZE_ANY_EXHDR(name);
	value = findJsonbValueFromContainer(&state.push->claims->root, JB_FOBJECT, &key);
	if (!value)
		PG_RETURN_NULL();
	PG_RETURN_JSONB_P(JsonbValueToJsonb(value));
}

/* _seal_registration() void: the generation of this transaction is complete, no registered row may be written any more. */
Datum
synchro_seal_registration(PG_FUNCTION_ARGS)
{
	register_callbacks();
	state.sealed_in = GetCurrentSubTransactionId();
	PG_RETURN_VOID();
}
