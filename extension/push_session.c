/*
 * push_session.c
 *		What the application's code must not leave behind in the session of a push.
 *
 * A session of the adapter serves all users, and rights of the adapter are rights over all of them. Prepared statements outlive a
 * transaction, even one that is undone: code of the application could replace the one that the adapter uses next. Names in pg_temp
 * come before all others: they could stand in for what later statements of the session, and triggers of other owners, mean.
 */
#include "postgres.h"

#include "access/xact.h"
#include "nodes/parsenodes.h"
#include "tcop/utility.h"

#include "errcodes.h"
#include "fence.h"
#include "push.h"

static ProcessUtility_hook_type next_hook = NULL;

/* Commands with an effect on the session that does not end with the transaction. Settings are put back by the push. */
static bool
outlives_transaction(const Node *statement)
{
	switch (nodeTag(statement))
	{
		case T_PrepareStmt:
		case T_DeallocateStmt:
		case T_ListenStmt:
		case T_UnlistenStmt:
		case T_DiscardStmt:
		case T_LoadStmt:
			return true;
		default:
			return false;
	}
}

static void
guard_utility(PlannedStmt *statement, const char *query, bool read_only_tree, ProcessUtilityContext context, ParamListInfo params,
			  QueryEnvironment *environment, DestReceiver *dest, QueryCompletion *completion)
{
	if (fence_push_active() && outlives_transaction(statement->utilityStmt))
		ereport(ERROR,
				(errcode(SYNCHRO_ERR_WRONG_TRANSACTION_STATE),
				 errmsg("the application must not change the session of a push"),
				 errhint("PREPARE, DEALLOCATE, LISTEN, UNLISTEN, DISCARD and LOAD are refused to triggers while they run in a push.")));
	(next_hook ? next_hook : standard_ProcessUtility) (statement, query, read_only_tree, context, params, environment, dest,
														completion);
}

void
push_session_init(void)
{
	next_hook = ProcessUtility_hook;
	ProcessUtility_hook = guard_utility;
}

/* Begins to watch for temporary objects; returns what push_temp_leave needs. */
bool
push_temp_enter(void)
{
	bool		before = (MyXactFlags & XACT_FLAGS_ACCESSEDTEMPNAMESPACE) != 0;

	MyXactFlags &= ~XACT_FLAGS_ACCESSEDTEMPNAMESPACE;
	return before;
}

/* Has the application made or used a temporary object? */
bool
push_temp_leave(bool before)
{
	bool		used = (MyXactFlags & XACT_FLAGS_ACCESSEDTEMPNAMESPACE) != 0;

	if (before)
		MyXactFlags |= XACT_FLAGS_ACCESSEDTEMPNAMESPACE;
	return used;
}
