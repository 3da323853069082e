/*
 * fence_guard.c
 *		BEFORE triggers of registered relations: what must not happen to them.
 */
#include "postgres.h"

#include "commands/trigger.h"
#include "executor/tuptable.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"

#include "errcodes.h"
#include "fence.h"

PG_FUNCTION_INFO_V1(synchro_key_guard);
PG_FUNCTION_INFO_V1(synchro_truncate_guard);

/* BEFORE UPDATE OF <key> FOR EACH ROW. The column is the trigger's own, also in partitions. Clients know a row by its key's text. */
Datum
synchro_key_guard(PG_FUNCTION_ARGS)
{
	TriggerData *td = (TriggerData *) fcinfo->context;
	Form_pg_attribute att;
	AttrNumber	key;
	Datum		old_value;
	Datum		new_value;
	bool		old_null;
	bool		new_null;

	if (!CALLED_AS_TRIGGER(fcinfo) || !TRIGGER_FIRED_BY_UPDATE(td->tg_event) || !TRIGGER_FIRED_FOR_ROW(td->tg_event) ||
		td->tg_trigger->tgnattr != 1)
		elog(ERROR, "not called by a trigger for updates of one column");
	key = td->tg_trigger->tgattr[0];
	att = TupleDescAttr(RelationGetDescr(td->tg_relation), key - 1);
	old_value = slot_getattr(td->tg_trigslot, key, &old_null);
	new_value = slot_getattr(td->tg_newslot, key, &new_null);
	if (!old_null && !new_null && !datum_image_eq(old_value, new_value, att->attbyval, att->attlen))
	{
		Oid			output;
		bool		varlena;

		getTypeOutputInfo(att->atttypid, &output, &varlena);
		if (strcmp(OidOutputFunctionCall(output, old_value), OidOutputFunctionCall(output, new_value)) != 0)
			new_null = true;
	}
	if (old_null || new_null)
		ereport(ERROR,
				(errcode(SYNCHRO_ERR_KEY_UPDATE_REFUSED),
				 errmsg("the key of registered table %s must not change", RelationGetRelationName(td->tg_relation)),
				 errhint("Delete the row and insert another one."),
				 errtable(td->tg_relation)));
	return PointerGetDatum(td->tg_newtuple);
}

/* BEFORE TRUNCATE */
Datum
synchro_truncate_guard(PG_FUNCTION_ARGS)
{
	TriggerData *td = (TriggerData *) fcinfo->context;

	if (!CALLED_AS_TRIGGER(fcinfo) || !TRIGGER_FIRED_BY_TRUNCATE(td->tg_event))
		elog(ERROR, "not called by a TRUNCATE trigger");
	ereport(ERROR,
			(errcode(SYNCHRO_ERR_TRUNCATE_REFUSED),
			 errmsg("registered table %s cannot be truncated", RelationGetRelationName(td->tg_relation)),
			 errhint("Use DELETE, or unregister the table first."),
			 errtable(td->tg_relation)));
	return PointerGetDatum(NULL);
}
