/*
 * restricted.c
 *		Security-restricted execution: the only function that lets code of an application run while we are at work.
 *
 * PostgreSQL does the same for index expressions, ANALYZE and REFRESH MATERIALIZED VIEW. Restricted code can't change its role, make
 * temporary objects, LISTEN, PREPARE or hold a cursor. Nor can it write, not even through a volatile function (the CHECK of a domain).
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/guc.h"

#include "seceval.h"

/* Whatever can change the result of a built-in function has one value here, in every session. */
static const char *const pinned_settings[][2] = {
	{"search_path", "pg_catalog, synchro, pg_temp"},
	{"DateStyle", "ISO, YMD"},
	{"IntervalStyle", "postgres"},
	{"TimeZone", "UTC"},
	{"timezone_abbreviations", "Default"},
	{"extra_float_digits", "1"},
	{"bytea_output", "hex"},
	{"xmlbinary", "base64"},
	{"xmloption", "content"},
	{"lc_monetary", "C"},
	{"lc_numeric", "C"},
	{"lc_time", "C"},
	{"default_text_search_config", "pg_catalog.simple"},
	{"array_nulls", "on"},
	{"quote_all_identifiers", "off"},
	{"row_security", "on"},
	{"jit", "off"},
	{"max_parallel_workers_per_gather", "0"},
	{"plan_cache_mode", "auto"},
	{"enable_seqscan", "on"},
	{"enable_hashjoin", "on"},
	{"enable_mergejoin", "on"},
	/* the rows in question were written just now: their pages are in memory, while the whole table may not be */
	{"seq_page_cost", "1"},
	{"random_page_cost", "0.1"},
};

void
syn_set_option(const char *name, const char *value)
{
	if (strcmp(GetConfigOption(name, false, false), value) != 0)
		(void) set_config_option(name, value, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
}

void
syn_pin_settings(void)
{
	for (int i = 0; i < lengthof(pinned_settings); i++)
		syn_set_option(pinned_settings[i][0], pinned_settings[i][1]);
}

/* When an error leaves body, ending the (sub)transaction undoes steps 1 to 4. */
void
syn_restricted_call(Oid role, SynRestrictedBody body, void *arg)
{
	Oid			caller;
	int			caller_context;
	int			nest_level;
	bool		caller_reads = XactReadOnly;

	/* 1. Become the role, and no other from there. */
	GetUserIdAndSecContext(&caller, &caller_context);
	SetUserIdAndSecContext(role, caller_context | SECURITY_RESTRICTED_OPERATION);

	/* 2. Whatever it sets ends with the call. */
	nest_level = NewGUCNestLevel();

	/* 3. Nothing that the session has set matters. */
	syn_pin_settings();

	/* 4. It reads only, whatever it calls. */
	XactReadOnly = true;

	/* 5. Work. */
	body(arg);

	/* 6. Back to writing, 7. to the settings, 8. and to the role. */
	XactReadOnly = caller_reads;
	AtEOXact_GUC(false, nest_level);
	SetUserIdAndSecContext(caller, caller_context);
}
