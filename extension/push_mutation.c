/*
 * push_mutation.c
 *		The mutations of a round, one after the other, or as one atomic group.
 */
#include "postgres.h"

#include "utils/guc.h"

#include "guc.h"
#include "push.h"

/* Lock attempts for a row that is visible but was not lockable a moment ago: it may have been replaced in between. */
#define LOCK_ATTEMPTS 3

static bool
write_insert(PushBatch *batch, PushMutation *m, Datum *values, char *nulls)
{
	const char *version;
	TransactionId xmin;
	char		op;

	if (!push_insert(batch, m, values, nulls))
		push_reject(m, PUSH_POLICY_REJECTED, "the application suppressed the write");
	/* a delete of that identity may have been open until our insert waited for it, so this comes after, under a new snapshot */
	else if ((version = push_tombstone(m->row)) != NULL)
	{
		if (push_last_fence(m->row, &op, &xmin) && op == 'D')
			push_reject(m, PUSH_POLICY_REJECTED, "the application removed the row");
		else
		{
			push_reject(m, PUSH_ROW_DELETED, "the row is deleted");
			m->server_version = version;
		}
	}
	return m->code == NULL;
}

/* Locks the row and compares its version with the mutation's. */
static bool
lock_and_compare(PushBatch *batch, PushMutation *m)
{
	PushSelect	mode = m->op == PUSH_DELETE && !m->rel->deleted ? PUSH_LOCK_DELETE : PUSH_LOCK_UPDATE;
	PushImage	image;
	const char *version;
	bool		locked = false;

	for (int i = 0; i < LOCK_ATTEMPTS && !locked; i++)
	{
		locked = push_select(batch, m->row, mode, &image);
		if (!locked && !push_select(batch, m->row, PUSH_READ, &image))
			break;
	}
	if (!locked)
	{
		push_missing(batch, m);
		return false;
	}
	version = push_current_version(m->row, image.xmin);
	m->stale = version == NULL;
	if (m->stale)
		return false;
	if (image.deleted)
		push_reject(m, PUSH_ROW_DELETED, "the row is deleted");
	else if (strcmp(version, m->base_version) != 0)
		push_reject(m, PUSH_VERSION_CONFLICT, "the row has another version");
	else
		return true;
	/* both policies let the writer see what it locked */
	if (push_select(batch, m->row, PUSH_READ, &image))
		push_show(batch, m, &image, version);
	else
		push_reject(m, PUSH_POLICY_REJECTED, "a policy forbids the write");
	return false;
}

/*
 * May one statement compare and write? Only if nothing else hangs on the write, so that the row it returns is the one that stands,
 * and the version that the mutation was written against is that of a row version whose xmin is known. A hard delete is not for it:
 * by itself it would not ask the policies for updates.
 */
static bool
can_swap(PushBatch *batch, PushMutation *m)
{
	return !batch->atomic && m->rel->plain && (m->op == PUSH_UPDATE || m->rel->deleted) && m->row->version &&
		strcmp(m->row->version, m->base_version) == 0;
}

/* Converts, compares and writes; constraints are deferred. False: the mutation is not accepted, or stale. */
static bool
write_mutation(PushBatch *batch, void *subject)
{
	PushMutation *m = subject;
	int			n = (m->columns ? m->columns->len : 0) + 1;
	Datum	   *values = palloc(sizeof(Datum) * n);
	char	   *nulls = palloc(n);

	/* code of the application may have set it since */
	if (strcmp(synchro_user_id, batch->user_id) != 0)
		(void) set_config_option("synchro.user_id", batch->user_id, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0, false);
	if (!push_values(batch, m, values, nulls))
	{
		push_reject(m, PUSH_VALIDATION_FAILED, psprintf("a value is not a canonical value of its field: %s", m->column));
		return false;
	}
	if (m->op == PUSH_INSERT)
		return write_insert(batch, m, values, nulls);
	if (can_swap(batch, m) && push_swap(batch, m, values, nulls))
		return true;
	if (!lock_and_compare(batch, m))
		return false;
	if (!(m->op == PUSH_UPDATE ? push_update(batch, m, values, nulls) : push_delete(batch, m)))
		push_reject(m, PUSH_POLICY_REJECTED, "a policy or the application suppressed the write");
	return m->code == NULL;
}

/* A mutation on its own: its constraints are settled and its row is read back before the next one begins. */
static bool
execute_single(PushBatch *batch, void *subject)
{
	push_constraints(batch, true);
	if (!write_mutation(batch, subject))
		return false;
	push_constraints(batch, false);
	return push_read_back(batch, subject);
}

static bool
settle_group(PushBatch *batch, void *subject)
{
	push_constraints(batch, false);
	return true;
}

/* Runs a step of one mutation; whatever goes wrong becomes its outcome or is thrown on. True: it stands. */
static bool
attempt(PushBatch *batch, PushMutation *m, PushWork work)
{
	bool		kept;
	bool		application;
	ErrorData  *error = push_subtransaction(batch, work, m, &kept);

	if (!error)
		return kept;
	application = batch->application;
	if (application && m->op == PUSH_INSERT && push_key_violation(error, m->rel))
	{
		ErrorData  *second = push_subtransaction(batch, push_find_conflict, m, &kept);

		if (second)
			push_error_outcome(second, batch->application, m);
		else if (m->code || m->stale)
			return false;
	}
	if (!m->code)
		push_error_outcome(error, application, m);
	return false;
}

static void
forget_outcome(PushMutation *m)
{
	m->stale = false;
	m->written = (Datum) 0;
	m->column = NULL;
	m->code = m->message = m->server_version = NULL;
	m->server_row = NULL;
	m->row_digest = NULL;
}

/* The mutation that failed a group: nothing of it stays, and the others are told so. */
static void
reject_others(PushBatch *batch, PushMutation *failed)
{
	for (int i = 0; i < batch->nmutations; i++)
	{
		PushMutation *m = &batch->mutations[i];

		if (m == failed)
			continue;
		forget_outcome(m);
		push_reject(m, PUSH_ATOMIC_REJECTED, "another mutation of the group was rejected");
	}
}

/* All or nothing: constraints are settled once, at the end, so members may depend on each other. */
static PushRound
execute_group(PushBatch *batch)
{
	PushMutation *last = &batch->mutations[batch->nmutations - 1];
	PushMutation *failed = NULL;

	for (int i = 0; i < batch->nmutations && !failed; i++)
		if (batch->mutations[i].code)
			failed = &batch->mutations[i];
	if (!failed)
		push_constraints(batch, true);
	for (int i = 0; i < batch->nmutations && !failed; i++)
		if (!attempt(batch, &batch->mutations[i], write_mutation))
			failed = &batch->mutations[i];
	/* a constraint that only the group as a whole breaks is told with its last member */
	if (!failed && !attempt(batch, last, settle_group))
		failed = last;
	for (int i = 0; i < batch->nmutations && !failed; i++)
		if (!attempt(batch, &batch->mutations[i], push_read_back))
			failed = &batch->mutations[i];
	if (!failed)
		return PUSH_ROUND_KEEP;
	if (failed->stale)
		return PUSH_ROUND_STALE;
	reject_others(batch, failed);
	return PUSH_ROUND_UNDO;
}

/* Executes all mutations. Nothing is final before the caller has kept or undone the round. */
PushRound
push_round(PushBatch *batch)
{
	for (int i = 0; i < batch->nmutations; i++)
		if (batch->mutations[i].row)
			forget_outcome(&batch->mutations[i]);
	if (batch->atomic)
		return execute_group(batch);
	for (int i = 0; i < batch->nmutations; i++)
	{
		PushMutation *m = &batch->mutations[i];

		if (!m->code && !attempt(batch, m, execute_single) && m->stale)
			return PUSH_ROUND_STALE;
	}
	return PUSH_ROUND_KEEP;
}
