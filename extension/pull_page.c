/*
 * pull_page.c
 *		Finds the effects of a page: those after each cursor, merged by position, scope, table and key.
 *
 * Each scope is read by the indexes of its positions, from its cursor on and no further than the page can reach. What a page costs does
 * not depend on how much lies behind it.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/pg_lsn.h"
#include "utils/typcache.h"

#include "compat.h"
#include "pull_page.h"

/* Attributes of type synchro.scope_cursor. */
enum
{
	CURSOR_SCOPE_NO,
	CURSOR_SCOPE_ID,
	CURSOR_LSN,
	CURSOR_EVENT,
	CURSOR_EFFECT,
	CURSOR_MEMBERSHIP,
	CURSOR_RETENTION,
	CURSOR_HIGH,
	CURSOR_NATTS
};

typedef struct PullPage
{
	int64		schema_version;
	XLogRecPtr	boundary;
	int			limit;
	SynPageCursor *cursors;
	int			ncursors;
	PagePart   *parts;
	int			nparts;
	PageEntry  *entries;		/* limit + 1 of them make a page with more behind it */
	int			nentries;
	int			room;
	bool		bounded;		/* there are limit + 1 in order: nothing behind the last matters */
} PullPage;

typedef struct EntryColumns
{
	int			lsn;
	int			event;
	int			effect;
	int			rel_no;
	int			state;
	int			key;
	int			version;
	int			schema;
	int			digest;
} EntryColumns;

PG_FUNCTION_INFO_V1(synchro_pull_page);

static int
compare_octets(SynText a, SynText b)
{
	int			diff = memcmp(a.data, b.data, Min(a.len, b.len));

	return diff != 0 ? diff : a.len - b.len;
}

static SynText
text_of(Datum value)
{
	struct varlena *text = PG_DETOAST_DATUM_PACKED(value);
	SynText		result = {VARDATA_ANY(text), VARSIZE_ANY_EXHDR(text)};

	return result;
}

static SynText
copy_of(Datum value)
{
	SynText		text = text_of(value);

	text.data = memcpy(palloc(Max(text.len, 1)), text.data, text.len);
	return text;
}

static int
compare_entries(const void *x, const void *y)
{
	const PageEntry *a = x;
	const PageEntry *b = y;
	int			diff;

	if (a->lsn != b->lsn)
		return a->lsn < b->lsn ? -1 : 1;
	if (a->event != b->event)
		return a->event < b->event ? -1 : 1;
	if (a->effect != b->effect)
		return a->effect < b->effect ? -1 : 1;
	if (a->scope != b->scope)
		return a->scope - b->scope; /* cursors are in the order of their scope ids */
	diff = strcmp(a->part->rel->table_id, b->part->rel->table_id);
	return diff != 0 ? diff : compare_octets(a->key, b->key);
}

/* Puts the entries in order and forgets those that this page can't reach. */
static void
settle(PullPage *page)
{
	qsort(page->entries, page->nentries, sizeof(PageEntry), compare_entries);
	if (page->nentries > page->limit)
	{
		page->nentries = page->limit + 1;
		page->bounded = true;
	}
}

static PageEntry *
add_entry(PullPage *page)
{
	if (page->nentries == page->room)
	{
		if (page->nentries > 4 * (page->limit + 1))
			settle(page);
		else
		{
			page->room *= 2;
			page->entries = repalloc(page->entries, page->room * sizeof(PageEntry));
		}
	}
	return &page->entries[page->nentries++];
}

static void
find_parts(PullPage *page)
{
	SynLookup	field;

	page->parts = palloc(sizeof(PagePart));
	syn_lookup_open(&field, "manifest_field", "manifest_field_pkey");
	syn_lookup_int8(&field, page->schema_version);
	syn_lookup_begin(&field);
	while (syn_lookup_next(&field))
	{
		PagePart   *part;

		if (!DatumGetBool(syn_lookup_value(&field, "is_key")))
			continue;
		page->parts = repalloc(page->parts, (page->nparts + 1) * sizeof(PagePart));
		part = &page->parts[page->nparts++];
		memset(part, 0, sizeof(*part));
		part->rel_no = DatumGetInt32(syn_lookup_value(&field, "rel_no"));
	}
	syn_lookup_close(&field);
	for (int i = 0; i < page->nparts; i++)
		page->parts[i].rel = syn_relation(page->parts[i].rel_no, page->schema_version);
}

/* Reads entries of a scope from where the lookup begins; false: as far as this page reaches. */
static bool
read_range(PullPage *page, SynLookup *entry, const EntryColumns *c, int scope, int *count)
{
	TupleTableSlot *slot = entry->slot;
	bool		isnull;

	syn_lookup_begin(entry);
	while (*count <= page->limit)
	{
		PageEntry	e = {.scope = scope};
		int			rel_no;

		if (!syn_lookup_next(entry))
			return true;
		CHECK_FOR_INTERRUPTS();
		e.lsn = DatumGetLSN(slot_getattr(slot, c->lsn, &isnull));
		e.event = DatumGetInt64(slot_getattr(slot, c->event, &isnull));
		e.effect = DatumGetInt32(slot_getattr(slot, c->effect, &isnull));
		rel_no = DatumGetInt32(slot_getattr(slot, c->rel_no, &isnull));
		if (e.lsn > page->boundary)
			return false;
		for (int i = 0; i < page->nparts && e.part == NULL; i++)
			if (page->parts[i].rel_no == rel_no)
				e.part = &page->parts[i];
		if (e.part == NULL)
			continue;
		e.key = text_of(slot_getattr(slot, c->key, &isnull));
		if (page->bounded && compare_entries(&e, &page->entries[page->limit]) > 0)
			return false;
		e.key = copy_of(slot_getattr(slot, c->key, &isnull));
		e.version = copy_of(slot_getattr(slot, c->version, &isnull));
		e.state = DatumGetChar(slot_getattr(slot, c->state, &isnull));
		e.current = DatumGetInt64(slot_getattr(slot, c->schema, &isnull)) == page->schema_version;
		if (e.state != 'x' && e.current)
		{
			Datum		digest = slot_getattr(slot, c->digest, &isnull);

			if (isnull || text_of(digest).len != SYN_HASH_LEN)
				syn_page_damaged("no digest");
			memcpy(e.digest, text_of(digest).data, SYN_HASH_LEN);
		}
		*add_entry(page) = e;
		(*count)++;
	}
	return false;
}

/* Reads the entries after a cursor, in their order: those of the same event, of the same commit, of later commits. */
static void
read_scope(PullPage *page, SynLookup *entry, const EntryColumns *c, int scope)
{
	const SynPageCursor *cursor = &page->cursors[scope];
	Datum		scope_no = Int64GetDatum(cursor->scope_no);
	Datum		lsn = LSNGetDatum(cursor->lsn);
	Datum		event = Int64GetDatum(cursor->event);
	bool		start = cursor->event == SYN_START_EVENT;
	int			count = 0;

	if (!start && cursor->event != SYN_END_EVENT)
	{
		syn_lookup_key(entry, BTEqualStrategyNumber, F_INT8EQ, scope_no);
		syn_lookup_key(entry, BTEqualStrategyNumber, F_PG_LSN_EQ, lsn);
		syn_lookup_key(entry, BTEqualStrategyNumber, F_INT8EQ, event);
		syn_lookup_key(entry, BTGreaterStrategyNumber, F_INT4GT, Int32GetDatum(cursor->effect));
		if (!read_range(page, entry, c, scope, &count))
			return;
		syn_lookup_key(entry, BTEqualStrategyNumber, F_INT8EQ, scope_no);
		syn_lookup_key(entry, BTEqualStrategyNumber, F_PG_LSN_EQ, lsn);
		syn_lookup_key(entry, BTGreaterStrategyNumber, F_INT8GT, event);
		if (!read_range(page, entry, c, scope, &count))
			return;
	}
	syn_lookup_key(entry, BTEqualStrategyNumber, F_INT8EQ, scope_no);
	syn_lookup_key(entry, start ? BTGreaterEqualStrategyNumber : BTGreaterStrategyNumber, start ? F_PG_LSN_GE : F_PG_LSN_GT, lsn);
	(void) read_range(page, entry, c, scope, &count);
}

/* Reads the entries of one index of positions. */
static void
find_entries(PullPage *page, const char *index)
{
	SynLookup	entry;
	EntryColumns c;

	syn_lookup_open(&entry, "scope_entry", index);
	c.lsn = syn_lookup_column(&entry, "commit_lsn");
	c.event = syn_lookup_column(&entry, "event_ordinal");
	c.effect = syn_lookup_column(&entry, "effect_ordinal");
	c.rel_no = syn_lookup_column(&entry, "rel_no");
	c.state = syn_lookup_column(&entry, "state");
	c.key = syn_lookup_column(&entry, "key");
	c.version = syn_lookup_column(&entry, "server_version");
	c.schema = syn_lookup_column(&entry, "digest_schema");
	c.digest = syn_lookup_column(&entry, "row_digest");
	for (int i = 0; i < page->ncursors; i++)
	{
		const SynPageCursor *cursor = &page->cursors[i];

		if (cursor->high < cursor->lsn || (cursor->high == cursor->lsn && cursor->event == SYN_END_EVENT))
			continue;
		read_scope(page, &entry, &c, i);
		if (page->nentries > page->limit)
			settle(page);
	}
	syn_lookup_close(&entry);
}

void
syn_pull_page(SynPageCursor *cursors, int ncursors, int64 schema_version, XLogRecPtr boundary, int limit, StringInfo changes, bool *more)
{
	PullPage	page = {
		.schema_version = schema_version, .boundary = boundary, .limit = limit, .cursors = cursors, .ncursors = ncursors
	};
	int			n;

	page.room = 64;
	page.entries = palloc(page.room * sizeof(PageEntry));
	find_parts(&page);
	find_entries(&page, "scope_entry_position");
	find_entries(&page, "scope_entry_left");
	settle(&page);
	n = syn_render_changes(changes, page.entries, Min(page.nentries, page.limit), cursors, page.schema_version);
	*more = page.nentries > n;
	if (*more && n > 0)
	{
		const PageEntry *last = &page.entries[n - 1];

		/* A cursor can't stand between two effects at one position. */
		if (last->scope == last[1].scope && last->lsn == last[1].lsn && last->event == last[1].event && last->effect == last[1].effect)
			syn_page_damaged("the position of another one");
	}
	for (int i = 0; i < page.nparts; i++)
		if (page.parts[i].open)
			syn_lookup_close(&page.parts[i].rows);
	for (int i = 0; *more && i < n; i++)
	{
		SynPageCursor *cursor = &cursors[page.entries[i].scope];

		cursor->lsn = page.entries[i].lsn;
		cursor->event = page.entries[i].event;
		cursor->effect = page.entries[i].effect;
	}
}

/* The cursors of assigned scopes, and the same as composite values; both lists are in the order of their ids' octets. */
static int
take_cursors(ArrayType *cursors, ArrayType *assigned, SynPageCursor **taken, Datum **whole)
{
	Datum	   *given;
	Datum	   *ids;
	int			ngiven;
	int			nids;
	int			next = 0;
	int			n = 0;

	deconstruct_array(cursors, ARR_ELEMTYPE(cursors), -1, false, TYPALIGN_DOUBLE, &given, NULL, &ngiven);
	deconstruct_array(assigned, TEXTOID, -1, false, TYPALIGN_INT, &ids, NULL, &nids);
	*taken = palloc0(Max(ngiven, 1) * sizeof(SynPageCursor));
	*whole = palloc(Max(ngiven, 1) * sizeof(Datum));
	for (int i = 0; i < ngiven; i++)
	{
		SynPageCursor *cursor = &(*taken)[n];
		HeapTupleHeader header = DatumGetHeapTupleHeader(given[i]);
		HeapTupleData tuple = {.t_len = HeapTupleHeaderGetDatumLength(header), .t_data = header};
		TupleDesc	desc = lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(header), HeapTupleHeaderGetTypMod(header));
		Datum		values[CURSOR_NATTS];
		bool		nulls[CURSOR_NATTS];
		SynText		id;

		if (desc->natts != CURSOR_NATTS)
			elog(ERROR, "synchro.scope_cursor is declared wrongly");
		heap_deform_tuple(&tuple, desc, values, nulls);
		ReleaseTupleDesc(desc);
		id = text_of(values[CURSOR_SCOPE_ID]);
		while (next < nids && compare_octets(text_of(ids[next]), id) < 0)
			next++;
		if (next == nids || compare_octets(text_of(ids[next]), id) != 0)
			continue;
		cursor->scope_no = nulls[CURSOR_SCOPE_NO] ? 0 : DatumGetInt64(values[CURSOR_SCOPE_NO]);
		cursor->scope_id = id;
		cursor->lsn = DatumGetLSN(values[CURSOR_LSN]);
		cursor->event = DatumGetInt64(values[CURSOR_EVENT]);
		cursor->effect = DatumGetInt32(values[CURSOR_EFFECT]);
		cursor->high = nulls[CURSOR_HIGH] ? InvalidXLogRecPtr : DatumGetLSN(values[CURSOR_HIGH]);
		(*whole)[n++] = given[i];
	}
	return n;
}

/* A composite value with the position of a cursor. */
static Datum
with_position(Datum whole, const SynPageCursor *cursor)
{
	HeapTupleHeader header = DatumGetHeapTupleHeader(whole);
	HeapTupleData tuple = {.t_len = HeapTupleHeaderGetDatumLength(header), .t_data = header};
	TupleDesc	desc = lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(header), HeapTupleHeaderGetTypMod(header));
	Datum		values[CURSOR_NATTS];
	bool		nulls[CURSOR_NATTS];

	heap_deform_tuple(&tuple, desc, values, nulls);
	values[CURSOR_LSN] = LSNGetDatum(cursor->lsn);
	values[CURSOR_EVENT] = Int64GetDatum(cursor->event);
	values[CURSOR_EFFECT] = Int32GetDatum(cursor->effect);
	whole = HeapTupleGetDatum(heap_form_tuple(desc, values, nulls));
	ReleaseTupleDesc(desc);
	return whole;
}

static Datum
cursor_array(Datum *cursors, int n, Oid type)
{
	return PointerGetDatum(construct_array(cursors, n, type, -1, false, TYPALIGN_DOUBLE));
}

/*
 * _pull_page(cursors scope_cursor[], assigned text[], schema_version bigint, boundary pg_lsn, page_limit int, OUT changes text,
 * OUT more boolean, OUT valid scope_cursor[], OUT advanced scope_cursor[])
 */
Datum
synchro_pull_page(PG_FUNCTION_ARGS)
{
	Oid			type = ARR_ELEMTYPE(PG_GETARG_ARRAYTYPE_P(0));
	SynPageCursor *cursors;
	Datum	   *whole;
	int			n;
	StringInfoData changes;
	bool		more;
	TupleDesc	desc;
	Datum		values[4];
	bool		nulls[4] = {false};

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "_pull_page is declared wrongly");
	n = take_cursors(PG_GETARG_ARRAYTYPE_P(0), PG_GETARG_ARRAYTYPE_P(1), &cursors, &whole);
	initStringInfo(&changes);
	syn_pull_page(cursors, n, PG_GETARG_INT64(2), PG_GETARG_LSN(3), PG_GETARG_INT32(4), &changes, &more);
	values[0] = PointerGetDatum(cstring_to_text_with_len(changes.data, changes.len));
	values[1] = BoolGetDatum(more);
	values[2] = cursor_array(whole, n, type);
	for (int i = 0; more && i < n; i++)
		whole[i] = with_position(whole[i], &cursors[i]);
	values[3] = cursor_array(whole, n, type);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}
