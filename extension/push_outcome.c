/*
 * push_outcome.c
 *		What the client is told of a mutation: the row that resulted, or the state that stood against it.
 *
 * Nothing is shown that the writer, under its policies, can't see. So a row that its own writer may not see once it is written is
 * not accepted: an accepted insert or update carries the complete row.
 */
#include "postgres.h"

#include "access/transam.h"
#include "executor/spi.h"
#include "utils/builtins.h"

#include "errcodes.h"
#include "push.h"

void
push_reject(PushMutation *m, const char *code, const char *message)
{
	m->code = code;
	m->message = message;
}

/* Puts a row and its version into the outcome. */
void
push_show(PushBatch *batch, PushMutation *m, const PushImage *image, const char *version)
{
	Datum		head[2] = {Int32GetDatum(m->rel->rel_no), Int64GetDatum(batch->schema_version)};
	Datum		json = FunctionCall3(&m->rel->row_json, head[0], head[1], image->row);

	m->server_version = version;
	m->server_row = TextDatumGetCString(json);
	m->row_digest = DatumGetByteaP(FunctionCall4(&m->rel->row_digest, head[0], head[1], image->row, CStringGetTextDatum(version)));
}

/*
 * After the constraints: the row, its version and its xmin belong together only now, since triggers may have written it again. False:
 * the mutation is not accepted.
 */
bool
push_read_back(PushBatch *batch, void *subject)
{
	PushMutation *m = subject;
	PushImage	image;
	TransactionId fenced;
	char		op = 0;
	const char *version = push_last_fence(m->row, &op, &fenced);

	if (!version && (m->op == PUSH_DELETE || push_exists_unfiltered(m->row)))
		ereport(ERROR,
				(errcode(SYNCHRO_ERR_SYNC_INTEGRITY_FAILURE),
				 errmsg("a pushed write left no fence")));
	if (!version)
	{
		push_reject(m, PUSH_POLICY_REJECTED, "the application gave the row another key");
		return false;
	}
	if (m->written)
	{
		image.row = m->written;
		push_show(batch, m, &image, version);
		return true;
	}
	if (m->op == PUSH_DELETE && !m->rel->deleted)
	{
		if (op != 'D')
			push_reject(m, PUSH_POLICY_REJECTED, "the application restored the row");
		else
			m->server_version = version;
		return m->code == NULL;
	}
	if (op == 'D')
		push_reject(m, PUSH_POLICY_REJECTED, "the application removed the row");
	else if (!push_select(batch, m->row, PUSH_READ, &image))
		push_reject(m, PUSH_POLICY_REJECTED, "the row would not be visible to its writer");
	else if (m->op == PUSH_DELETE && !image.deleted)
		push_reject(m, PUSH_POLICY_REJECTED, "the application restored the row");
	else if (!TransactionIdEquals(image.xmin, fenced))
		ereport(ERROR,
				(errcode(SYNCHRO_ERR_SYNC_INTEGRITY_FAILURE),
				 errmsg("the last write of a pushed row left no fence")));
	else
		push_show(batch, m, &image, version);
	return m->code == NULL;
}

/* Update or delete found no row that it may lock. */
void
push_missing(PushBatch *batch, PushMutation *m)
{
	const char *version;
	PushImage	image;

	if (push_select(batch, m->row, PUSH_READ, &image))
		push_reject(m, PUSH_POLICY_REJECTED, "a policy forbids the write");
	else if (!push_exists_unfiltered(m->row) && (version = push_tombstone(m->row)) != NULL)
	{
		push_reject(m, PUSH_ROW_DELETED, "the row is deleted");
		m->server_version = version;
	}
	else
		push_reject(m, PUSH_ROW_NOT_FOUND, "there is no such row");
}

/*
 * After an insert met its own key: what is there? Runs in a subtransaction of its own; true keeps it. A row that the writer can't see
 * is not revealed. Without any row the violation was not about this one, and m->code stays NULL.
 */
bool
push_find_conflict(PushBatch *batch, void *subject)
{
	PushMutation *m = subject;
	PushImage	image;
	const char *version;

	if (push_select(batch, m->row, PUSH_READ, &image))
	{
		version = push_current_version(m->row, image.xmin);
		m->stale = version == NULL;
		if (m->stale)
			return true;
		if (image.deleted)
			push_reject(m, PUSH_ROW_DELETED, "the row is deleted");
		else
			push_reject(m, PUSH_ROW_ALREADY_EXISTS, "the row exists already");
		push_show(batch, m, &image, version);
	}
	else if (push_exists_unfiltered(m->row))
		push_reject(m, PUSH_POLICY_REJECTED, "a policy forbids the write");
	else if ((version = push_tombstone(m->row)) != NULL)
	{
		push_reject(m, PUSH_ROW_DELETED, "the row is deleted");
		m->server_version = version;
	}
	return true;
}
