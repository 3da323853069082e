/*
 * apply_entries.c
 *		Writes entries, the places of rows in scopes, for the worker.
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "apply.h"
#include "bulk.h"
#include "canonical.h"
#include "compat.h"
#include "random.h"

#define STATE_LEFT 'x'

/* Columns of scope_entry, in the order in which they are looked up. */
enum
{
	SCOPE_NO, COMMIT_LSN, EVENT_ORDINAL, DIGEST_SCHEMA, REL_NO, EFFECT_ORDINAL, STATE, KEY, SERVER_VERSION, ROW_DIGEST, NCOLUMNS
};

static const char *const column_names[] = {
	"scope_no", "commit_lsn", "event_ordinal", "digest_schema", "rel_no", "effect_ordinal", "state", "key", "server_version", "row_digest"
};

static Datum
octets(Octets *in, size_t n)
{
	return PointerGetDatum(cstring_to_text_with_len(octets_take(in, n), n));
}

/* scope u64, commit LSN u64, event ordinal u64, relation u32, effect ordinal u32, state u8, key u16 and octets, version, digest if not left */
static void
read_entry(Octets *in, int64 schema_version, Datum *values)
{
	values[SCOPE_NO] = Int64GetDatum((int64) octets_u64(in));
	values[COMMIT_LSN] = UInt64GetDatum(octets_u64(in));
	values[EVENT_ORDINAL] = Int64GetDatum((int64) octets_u64(in));
	values[DIGEST_SCHEMA] = Int64GetDatum(schema_version);
	values[REL_NO] = Int32GetDatum((int32) octets_u32(in));
	values[EFFECT_ORDINAL] = Int32GetDatum((int32) octets_u32(in));
	values[STATE] = CharGetDatum(octets_u8(in));
	values[KEY] = octets(in, octets_u16(in));
	values[SERVER_VERSION] = octets(in, SYN_VERSION_LEN);
	values[ROW_DIGEST] = DatumGetChar(values[STATE]) == STATE_LEFT ? (Datum) 0 : octets(in, SYN_HASH_LEN);
}

static void
fill(TupleTableSlot *slot, const int *columns, const Datum *values)
{
	for (int i = 0; i < NCOLUMNS; i++)
	{
		slot->tts_values[columns[i]] = values[i];
		slot->tts_isnull[columns[i]] = i == ROW_DIGEST && values[i] == (Datum) 0;
	}
}

/*
 * Every column of an index changes, so an update would write a new row and all index entries as well, one by one: deleting the old entry and
 * adding the new one among others, many to a page, costs a little less. False: there was no such entry, or not any more, which compaction does with entries of rows
 * that left.
 */
static bool
remove_entry(Bulk *bulk, const Datum *values)
{
	Datum		key[] = {values[SCOPE_NO], values[REL_NO], values[KEY]};

	return bulk_find_next(bulk, key) && bulk_delete(bulk);
}

PG_FUNCTION_INFO_V1(synchro_store_entries);

/* _store_entries(schema_version bigint, entries bytea, new boolean) bigint */
Datum
synchro_store_entries(PG_FUNCTION_ARGS)
{
	int64		schema_version = PG_GETARG_INT64(0);
	bytea	   *param = PG_GETARG_BYTEA_PP(1);
	bool		all_new = PG_GETARG_BOOL(2);
	Octets		in = {VARDATA_ANY(param), VARDATA_ANY(param) + VARSIZE_ANY_EXHDR(param)};
	Bulk	   *bulk = bulk_open(get_relname_relid("scope_entry", get_namespace_oid("synchro", false)));
	MemoryContext caller = MemoryContextSwitchTo(bulk->rows);
	int			columns[NCOLUMNS];
	int64		total = 0;

	for (int i = 0; i < NCOLUMNS; i++)
		columns[i] = apply_column(bulk->rel, column_names[i]);
	for (; in.at < in.end; total++)
	{
		Datum		values[NCOLUMNS];
		TupleTableSlot *slot;
		bool		replaces;

		read_entry(&in, schema_version, values);
		replaces = !all_new && remove_entry(bulk, values);
		if (!all_new && !replaces && DatumGetChar(values[STATE]) == STATE_LEFT)
			ereport(ERROR, (errcode(SYNCHRO_ERR_INVALID_PARAMETER), errmsg("a row is not in a scope that it leaves")));
		slot = bulk_slot(bulk);
		memset(slot->tts_isnull, true, sizeof(bool) * bulk->desc->natts);
		fill(slot, columns, values);
		bulk_insert(bulk, replaces);
		if (bulk->waiting == BULK_ROWS || total % BULK_ROWS == 0)
			bulk_flush(bulk);
	}
	bulk_flush(bulk);
	MemoryContextSwitchTo(caller);
	bulk_close(bulk);
	PG_RETURN_INT64(total);
}
