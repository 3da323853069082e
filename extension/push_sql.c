/*
 * push_sql.c
 *		Saved plans of the push executor, found by their text, and the roles they run as.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/plancache.h"
#include "utils/resowner.h"

#include "push.h"

/* More statements than this in one session are forgotten all at once. */
#define MAX_PLANS 1000

typedef struct PlanEntry
{
	uint64		hash;			/* must be first: hash key */
	char	   *sql;
	int			nargs;
	Oid		   *types;
	SPIPlanPtr	plan;
} PlanEntry;

static HTAB *plans = NULL;
static MemoryContext plans_cxt = NULL;

/* Continues as another role. Code that runs under it can't change the role back or set another one. */
void
push_become(PushRole *saved, Oid role, int flags)
{
	GetUserIdAndSecContext(&saved->user, &saved->sec);
	SetUserIdAndSecContext(role, saved->sec | SECURITY_LOCAL_USERID_CHANGE | flags);
}

void
push_unbecome(const PushRole *saved)
{
	SetUserIdAndSecContext(saved->user, saved->sec);
}

static void
forget_plans(void)
{
	HASH_SEQ_STATUS seq;
	PlanEntry  *entry;

	if (plans)
	{
		hash_seq_init(&seq, plans);
		while ((entry = hash_seq_search(&seq)) != NULL)
			if (entry->plan)
				SPI_freeplan(entry->plan);
		plans = NULL;
		MemoryContextDelete(plans_cxt);
	}
	plans_cxt = NULL;
}

static PlanEntry *
find_plan(const char *sql, int nargs, const Oid *types)
{
	uint64		hash = hash_bytes_extended((const unsigned char *) sql, strlen(sql), 0) ^
		hash_bytes_extended((const unsigned char *) types, sizeof(Oid) * nargs, 1);
	PlanEntry  *entry;
	bool		found;

	if (plans && hash_get_num_entries(plans) >= MAX_PLANS)
		forget_plans();
	if (!plans)
	{
		HASHCTL		ctl = {.keysize = sizeof(uint64), .entrysize = sizeof(PlanEntry)};

		plans_cxt = AllocSetContextCreate(TopMemoryContext, "synchro push plans", ALLOCSET_DEFAULT_SIZES);
		ctl.hcxt = plans_cxt;
		plans = hash_create("synchro push plans", 128, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	entry = hash_search(plans, &hash, HASH_ENTER, &found);
	if (found && entry->plan && strcmp(entry->sql, sql) == 0 && entry->nargs == nargs &&
		memcmp(entry->types, types, sizeof(Oid) * nargs) == 0)
		return entry;
	if (found && entry->plan)
		SPI_freeplan(entry->plan);
	entry->plan = NULL;
	entry->sql = MemoryContextStrdup(plans_cxt, sql);
	entry->nargs = nargs;
	entry->types = MemoryContextAlloc(plans_cxt, sizeof(Oid) * Max(nargs, 1));
	memcpy(entry->types, types, sizeof(Oid) * nargs);
	return entry;
}

/*
 * Plans a statement before it runs. Every statement finds its rows by key, so the generic plan is the right one from the start, and
 * it must not be one that scans the table because that was empty at the time. (A scan that must be costs so much then that it would
 * be compiled.) The settings must not reach what runs inside of the statement, hence not its execution.
 */
static void
plan_now(SPIPlanPtr plan)
{
	int			nest = NewGUCNestLevel();
	CachedPlan *cached;

	(void) set_config_option("enable_seqscan", "off", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	(void) set_config_option("jit", "off", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	cached = SPI_plan_get_cached_plan(plan);
	if (cached)
		ReleaseCachedPlan(cached, CurrentResourceOwner);
	AtEOXact_GUC(false, nest);
}

/* Executes one statement as the current role under a fresh snapshot; the result is in SPI_tuptable, the number of rows is returned. */
uint64
push_exec(const char *sql, int nargs, const Oid *types, const Datum *args, const char *nulls)
{
	MemoryContext caller = CurrentMemoryContext;
	PlanEntry  *entry = find_plan(sql, nargs, types);
	int			rc;

	if (!entry->plan)
	{
		SPIPlanPtr	plan = SPI_prepare_cursor(sql, nargs, (Oid *) types, CURSOR_OPT_GENERIC_PLAN);

		if (!plan || SPI_keepplan(plan) != 0)
			elog(ERROR, "could not prepare a statement of a push");
		entry->plan = plan;
		plan_now(plan);
	}
	else if (!SPI_plan_is_valid(entry->plan))
		plan_now(entry->plan);
	rc = SPI_execute_plan(entry->plan, (Datum *) args, nulls, false, 0);
	if (rc < 0)
		elog(ERROR, "could not execute a statement of a push: %s", SPI_result_code_string(rc));
	MemoryContextSwitchTo(caller);
	return SPI_processed;
}

/* A value of the result, in the result's memory. Columns count from 1. */
Datum
push_column(uint64 row, int column, bool *isnull)
{
	bool		ignored;

	return SPI_getbinval(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, column, isnull ? isnull : &ignored);
}
