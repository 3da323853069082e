/*
 * fence_skip.c
 *		Spares updates that cannot touch the key what the key guard costs.
 *
 * As soon as a table has any BEFORE UPDATE row trigger, the executor fetches and locks every row before it asks which triggers the
 * updated columns concern, and writes a WAL record for each lock. For a bulk UPDATE that is a quarter of all that registration costs.
 * Columns that an UPDATE sets are known when it starts: if none of the relation's BEFORE UPDATE row triggers could fire for them, the
 * executor is told that there are none. What fires does not change; an update then locks its rows as it would without triggers.
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "catalog/pg_trigger.h"
#include "executor/executor.h"
#include "nodes/bitmapset.h"

#include "fence.h"

static ExecutorStart_hook_type previous_start = NULL;

/* May the trigger fire before a row is updated whose changed columns are these? */
static bool
may_fire(const Trigger *trigger, const Bitmapset *updated)
{
	if (!TRIGGER_TYPE_MATCHES(trigger->tgtype, TRIGGER_TYPE_ROW, TRIGGER_TYPE_BEFORE, TRIGGER_TYPE_UPDATE))
		return false;
	for (int i = 0; i < trigger->tgnattr; i++)
		if (bms_is_member(trigger->tgattr[i] - FirstLowInvalidHeapAttributeNumber, updated))
			return true;
	return trigger->tgnattr == 0;
}

/* The trigger descriptor is the executor's own copy. Tables without our guard are left alone. */
static void
skip_triggers(ResultRelInfo *info, EState *estate)
{
	TriggerDesc *triggers = info->ri_TrigDesc;
	Bitmapset  *updated;
	bool		guarded = false;

	if (triggers == NULL || !triggers->trig_update_before_row)
		return;
	updated = ExecGetAllUpdatedCols(info, estate);
	for (int i = 0; i < triggers->numtriggers; i++)
	{
		if (may_fire(&triggers->triggers[i], updated))
			return;
		guarded = guarded || strcmp(triggers->triggers[i].tgname, KEY_GUARD_TRIGGER) == 0;
	}
	if (guarded)
		triggers->trig_update_before_row = false;
}

static void
start_executor(QueryDesc *query, int eflags)
{
	ListCell   *cell;

	if (previous_start)
		previous_start(query, eflags);
	else
		standard_ExecutorStart(query, eflags);
	foreach(cell, query->estate->es_opened_result_relations)
		skip_triggers(lfirst(cell), query->estate);
}

void
fence_skip_init(void)
{
	previous_start = ExecutorStart_hook;
	ExecutorStart_hook = start_executor;
}
