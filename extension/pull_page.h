/*
 * pull_page.h
 *		What the two halves of a page share: effects are found (pull_page.c) and rendered (pull_render.c).
 */
#ifndef SYNCHRO_PULL_PAGE_H
#define SYNCHRO_PULL_PAGE_H

#include "postgres.h"

#include "access/xlogdefs.h"
#include "lib/stringinfo.h"

#include "canonical.h"
#include "cursor.h"
#include "lookup.h"

/* A relation of the manifest. */
typedef struct PagePart
{
	int			rel_no;
	const SynRelation *rel;
	bool		open;			/* the rest is there: the projection and how its key is found */
	SynLookup	rows;
	int			key_column;
	int			version_column;
	Oid			key_type;
	Oid			key_input;
	Oid			key_ioparam;
	RegProcedure key_equal;
	SynRowReader *reader;
} PagePart;

/* An effect of a scope: the latest on its row. */
typedef struct PageEntry
{
	XLogRecPtr	lsn;
	int64		event;
	int32		effect;
	int			scope;			/* number of its cursor */
	PagePart   *part;
	char		state;			/* l live, s source tombstone, x left */
	SynText		key;			/* compact octets */
	SynText		version;
	bool		current;		/* the digest was made under this manifest */
	uint8		digest[SYN_HASH_LEN];
} PageEntry;

/*
 * Renders entries in their order, comma separated, until the page is full; returns how many, at least one if there is one.
 * scopes: ids by number of cursor.
 */
extern int	syn_render_changes(StringInfo out, PageEntry *entries, int n, const SynText *scopes, int64 schema_version);

/* Raises sync_integrity_failure. */
pg_noreturn extern void syn_page_damaged(const char *what);

#endif							/* SYNCHRO_PULL_PAGE_H */
