/*
 * secret.c
 *		Keys of synchro.secret_key, cached per backend.
 *
 * A trigger on the table (synchro_secret_key_changed) turns every change of it into a relcache invalidation, so a cache is
 * dropped as soon as the change commits, or, for the changing transaction itself, at its next command. Keys are read with the
 * latest snapshot: a REPEATABLE READ transaction must not go on with a key that was retired meanwhile.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/tableam.h"
#include "catalog/namespace.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "compat.h"
#include "secret.h"

enum
{
	COLUMN_PURPOSE = 1,
	COLUMN_KEY_ID,
	COLUMN_SECRET,
	COLUMN_STATE
};

static SynchroSecret *keys = NULL;	/* TopMemoryContext */
static int	key_count = 0;
static Oid	key_table = InvalidOid; /* InvalidOid: the cache is empty */
static bool complete = false;	/* false also after a failure to fill it */
static bool callback_registered = false;

/* Drops the cache when the key table, or everything, is invalidated. */
static void
forget_keys(Datum arg, Oid relid)
{
	if (relid == key_table || relid == InvalidOid)
		key_table = InvalidOid;
}

/* Fills one cache entry from a row; false: a retired key. */
static bool
read_key(TupleTableSlot *slot, SynchroSecret *key)
{
	bool		isnull;
	char	   *state = TextDatumGetCString(slot_getattr(slot, COLUMN_STATE, &isnull));
	bytea	   *secret = DatumGetByteaPP(slot_getattr(slot, COLUMN_SECRET, &isnull));

	if (strcmp(state, "retired") == 0)
		return false;
	memset(key, 0, sizeof(*key));
	text_to_cstring_buffer(DatumGetTextPP(slot_getattr(slot, COLUMN_PURPOSE, &isnull)), key->purpose, sizeof(key->purpose));
	text_to_cstring_buffer(DatumGetTextPP(slot_getattr(slot, COLUMN_KEY_ID, &isnull)), key->key_id, sizeof(key->key_id));
	key->len = VARSIZE_ANY_EXHDR(secret);
	if (key->len < 16 || key->len > SYNCHRO_SECRET_MAX)
		elog(ERROR, "a synchro key has an impossible length");
	memcpy(key->secret, VARDATA_ANY(secret), key->len);
	key->active = strcmp(state, "active") == 0;
	return true;
}

static void
load_keys(void)
{
	Oid			relid;
	Relation	rel;
	Snapshot	snapshot;
	TableScanDesc scan;
	TupleTableSlot *slot;
	SynchroSecret *fresh = NULL;
	int			count = 0;
	int			room = 0;

	if (!callback_registered)
	{
		CacheRegisterRelcacheCallback(forget_keys, (Datum) 0);
		callback_registered = true;
	}
	complete = false;
	if (keys)
	{
		explicit_bzero(keys, key_count * sizeof(SynchroSecret));
		pfree(keys);
		keys = NULL;
		key_count = 0;
	}

	relid = get_relname_relid("secret_key", get_namespace_oid("synchro", false));
	/* Lock first: an invalidation that arrives later than this one marks the cache stale again. */
	rel = table_open(relid, AccessShareLock);
	key_table = relid;
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	scan = table_beginscan(rel, snapshot, 0, NULL);
	slot = table_slot_create(rel, NULL);
	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		if (count == room)
		{
			room = room ? room * 2 : 8;
			fresh = fresh ? repalloc(fresh, room * sizeof(SynchroSecret))
				: MemoryContextAlloc(TopMemoryContext, room * sizeof(SynchroSecret));
		}
		if (read_key(slot, &fresh[count]))
			count++;
	}
	ExecDropSingleTupleTableSlot(slot);
	table_endscan(scan);
	UnregisterSnapshot(snapshot);
	table_close(rel, AccessShareLock);
	keys = fresh;
	key_count = count;
	complete = true;
}

const SynchroSecret *
synchro_next_secret(const char *purpose, const SynchroSecret *previous)
{
	if (previous == NULL && (key_table == InvalidOid || !complete))
		load_keys();
	for (int i = previous ? previous - keys + 1 : 0; i < key_count; i++)
		if (strcmp(keys[i].purpose, purpose) == 0)
			return &keys[i];
	return NULL;
}

const SynchroSecret *
synchro_active_secret(const char *purpose)
{
	const SynchroSecret *key = NULL;

	while ((key = synchro_next_secret(purpose, key)) != NULL)
		if (key->active)
			return key;
	return NULL;
}

const SynchroSecret *
synchro_secret_by_id(const char *purpose, const char *key_id)
{
	const SynchroSecret *key = NULL;

	while ((key = synchro_next_secret(purpose, key)) != NULL)
		if (strcmp(key->key_id, key_id) == 0)
			return key;
	return NULL;
}
