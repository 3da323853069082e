/*
 * push_error.c
 *		Subtransactions of a push, and what an error of the application's tables means for a mutation.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_index.h"
#include "mb/pg_wchar.h"
#include "utils/lsyscache.h"
#include "utils/resowner.h"
#include "utils/syscache.h"

#include "push.h"

/* What an SQLSTATE, or else its class, says about a mutation; the first match counts. */
typedef struct ErrorRule
{
	const char *state;			/* whole or class */
	const char *code;
	const char *message;
} ErrorRule;

static const ErrorRule rules[] = {
	{"23502", PUSH_VALIDATION_FAILED, "a required value is missing"},
	{"23503", PUSH_VALIDATION_FAILED, "a foreign key constraint is violated"},
	{"23505", PUSH_VALIDATION_FAILED, "a unique constraint is violated"},
	{"23514", PUSH_VALIDATION_FAILED, "a check constraint is violated"},
	{"23P01", PUSH_VALIDATION_FAILED, "an exclusion constraint is violated"},
	{"23", PUSH_VALIDATION_FAILED, "a constraint is violated"},
	{"22", PUSH_VALIDATION_FAILED, "a value does not fit its column"},
	{"54", PUSH_VALIDATION_FAILED, "the row exceeds a limit of the server"},
	{"P0", PUSH_VALIDATION_FAILED, "a rule of the application refused the write"},
	{"42501", PUSH_POLICY_REJECTED, "a policy refused the write"},
	{"44", PUSH_POLICY_REJECTED, "a policy refused the write"},
};

/*
 * The classes that PostgreSQL raises itself. An error of another class was raised by a function of the application, on purpose; one
 * of these that has no rule says nothing about the mutation: it is operational or a defect, and undoes the batch.
 */
static const char *const server_classes[] = {
	"00", "01", "02", "03", "08", "09", "0A", "0B", "0F", "0L", "0P", "0Z", "20", "21", "22", "23", "24", "25", "26", "27", "28",
	"2B", "2D", "2F", "34", "38", "39", "3B", "3D", "3F", "40", "42", "44", "53", "54", "55", "57", "58", "72", "F0", "HV", "P0", "XX",
};

static const ErrorRule application_rule = {"", PUSH_VALIDATION_FAILED, "a rule of the application refused the write"};

static const ErrorRule *
find_rule(int sqlerrcode)
{
	const char *state = unpack_sql_state(sqlerrcode);

	for (int i = 0; i < lengthof(rules); i++)
		if (strncmp(state, rules[i].state, strlen(rules[i].state)) == 0)
			return &rules[i];
	for (int i = 0; i < lengthof(server_classes); i++)
		if (strncmp(state, server_classes[i], 2) == 0)
			return NULL;
	return &application_rule;
}

/* A name for a message: never longer than an identifier, whatever a function put there. */
static char *
bounded(const char *name)
{
	return pnstrdup(name, pg_mbcliplen(name, strlen(name), NAMEDATALEN - 1));
}

/* Does the error say something about a mutation? application: it came out of the application's tables or functions. */
bool
push_error_is_outcome(const ErrorData *error, bool application)
{
	return application && error->elevel == ERROR && find_rule(error->sqlerrcode) != NULL;
}

/*
 * Turns an error into the mutation's outcome, or throws it on when it is not about the mutation. Messages name a constraint or a
 * column, never a value; the texts that came with the error may hold values and are not used.
 */
void
push_error_outcome(ErrorData *error, bool application, PushMutation *m)
{
	const ErrorRule *rule;

	if (!push_error_is_outcome(error, application))
		ReThrowError(error);
	rule = find_rule(error->sqlerrcode);
	m->code = rule->code;
	m->message = rule->message;
	if (error->constraint_name && error->constraint_name[0])
		m->message = psprintf("%s: %s", rule->message, bounded(error->constraint_name));
	else if (error->column_name || m->column)
		m->message = psprintf("%s: %s", rule->message, bounded(error->column_name ? error->column_name : m->column));
}

/* Is the violated constraint the primary key of the relation, or of a partition of it? */
bool
push_key_violation(const ErrorData *error, const PushRelation *rel)
{
	Oid			namespace;
	Oid			index;
	HeapTuple	tuple;
	bool		match = false;

	if (error->sqlerrcode != ERRCODE_UNIQUE_VIOLATION || !error->schema_name || !error->constraint_name)
		return false;
	namespace = get_namespace_oid(error->schema_name, true);
	index = OidIsValid(namespace) ? get_relname_relid(error->constraint_name, namespace) : InvalidOid;
	tuple = OidIsValid(index) ? SearchSysCache1(INDEXRELID, ObjectIdGetDatum(index)) : NULL;
	if (HeapTupleIsValid(tuple))
	{
		Form_pg_index form = (Form_pg_index) GETSTRUCT(tuple);

		match = form->indisprimary &&
			(form->indrelid == rel->relid ||
			 (get_rel_relispartition(form->indrelid) &&
			  list_member_oid(get_partition_ancestors(form->indrelid), rel->relid)));
		ReleaseSysCache(tuple);
	}
	return match;
}

/*
 * Does work in a subtransaction, which is kept if work returns true. Returns the error that ended it, or NULL. Role, settings and
 * constraint modes are those from before in every case but one: kept constraint modes stay.
 */
ErrorData *
push_subtransaction(PushBatch *batch, PushWork work, void *subject, bool *kept)
{
	MemoryContext caller = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData  *volatile error = NULL;
	volatile bool keep = false;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(caller);
	PG_TRY();
	{
		batch->application = false;
		keep = work(batch, subject);
		MemoryContextSwitchTo(caller);
		if (keep)
			ReleaseCurrentSubTransaction();
		else
			RollbackAndReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(caller);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		keep = false;
	}
	PG_END_TRY();
	MemoryContextSwitchTo(caller);
	CurrentResourceOwner = owner;
	*kept = keep;
	return error;
}
