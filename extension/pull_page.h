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

/* Where a client is in a scope. */
typedef struct SynPageCursor
{
	int64		scope_no;		/* 0: no effect so far */
	SynText		scope_id;
	XLogRecPtr	lsn;
	int64		event;
	int32		effect;
	XLogRecPtr	high;			/* commit of the scope's last effect; 0: none so far */
} SynPageCursor;

/*
 * Appends the effects after the cursors, which are in the order of their scope ids, up to the boundary: comma separated, at most so
 * many, fewer where rows are large. more: some are left, and the cursors are moved to the last effect that was delivered; else they are
 * all delivered, and the cursors are as they were.
 */
extern void syn_pull_page(SynPageCursor *cursors, int ncursors, int64 schema_version, XLogRecPtr boundary, int limit, StringInfo changes,
						  bool *more);

/*
 * Renders entries in their order, comma separated, until the page is full; returns how many, at least one if there is one.
 */
extern int	syn_render_changes(StringInfo out, PageEntry *entries, int n, const SynPageCursor *cursors, int64 schema_version);

/* Raises sync_integrity_failure. */
pg_noreturn extern void syn_page_damaged(const char *what);

#endif							/* SYNCHRO_PULL_PAGE_H */
