/*
 * synchro.c
 *		Module entry: lists what the library initializes at load.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"

#include "bgworker.h"
#include "ddl.h"
#include "fence.h"
#include "guc.h"
#include "kept.h"
#include "push.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

void
_PG_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("synchro is not loaded at server start"),
				 errhint("Add synchro to shared_preload_libraries and restart the server.")));
	synchro_guc_init();
	synchro_bgworker_init();
	syn_kept_init();
	fence_skip_init();
	push_session_init();
	ddl_guard_init();
}
