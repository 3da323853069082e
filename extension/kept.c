/*
 * kept.c
 *		Rows of scopes kept in shared memory.
 *
 * One arena of blocks that is never exceeded (synchro.digest_memory); each scope has a chain of them. Readers copy what they find and
 * writers copy in what they have made, so nobody waits for anybody's work. It may all be lost at any time: then digests are computed
 * from the entries. A crash of any backend clears it, like all shared memory.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

#include "guc.h"
#include "kept.h"

#define BLOCK 2048
#define NONE (-1)

typedef struct Entry
{
	SynKeptKey	key;
	SynKeptState state;
	uint64		count;			/* rows */
	Size		len;			/* octets of them */
	Size		marks;			/* octets of their marks, which follow */
	int			first;			/* block */
	int			next;			/* entry of the same bucket, or free one */
	bool		taken;
	pg_atomic_uint32 used;		/* since the hand was here */
} Entry;

typedef struct Kept
{
	LWLock	   *lock;
	int			nblocks;
	int			free_blocks;	/* how many */
	int			free_block;		/* the first one */
	int			free_entry;
	int			hand;			/* the next entry that may have to go */
} Kept;

static Kept *kept;
static int *buckets;			/* first entry of each; as many as entries */
static Entry *entries;
static int *next_block;			/* of each block: the next one of its chain */
static char *blocks;

static shmem_request_hook_type prev_shmem_request_hook;
static shmem_startup_hook_type prev_shmem_startup_hook;

/* A senseless setting keeps nothing: the worker refuses to run with it. */
static int
block_count(void)
{
	return synchro_digest_memory > 0 && synchro_digest_memory <= SYNCHRO_DIGEST_MEMORY_MAX
		? (int) ((int64) synchro_digest_memory * 1024 * 1024 / BLOCK) : 0;
}

static Size
shared_size(void)
{
	int			n = block_count();
	Size		size = MAXALIGN(sizeof(Kept));

	size = add_size(size, MAXALIGN(mul_size(n, sizeof(int))));
	size = add_size(size, MAXALIGN(mul_size(n, sizeof(Entry))));
	size = add_size(size, MAXALIGN(mul_size(n, sizeof(int))));
	return add_size(size, mul_size(n, BLOCK));
}

static void
request_shared_memory(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();
	RequestAddinShmemSpace(shared_size());
	RequestNamedLWLockTranche("synchro_kept", 1);
}

static void
clear(void)
{
	int			n = block_count();

	kept->lock = &GetNamedLWLockTranche("synchro_kept")->lock;
	kept->nblocks = kept->free_blocks = n;
	kept->free_block = kept->free_entry = n > 0 ? 0 : NONE;
	kept->hand = 0;
	for (int i = 0; i < n; i++)
	{
		buckets[i] = NONE;
		entries[i].taken = false;
		entries[i].next = next_block[i] = i + 1 < n ? i + 1 : NONE;
		pg_atomic_init_u32(&entries[i].used, 0);
	}
}

static void
start_shared_memory(void)
{
	bool		found;
	int			n = block_count();

	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	kept = ShmemInitStruct("synchro kept rows", shared_size(), &found);
	buckets = (int *) ((char *) kept + MAXALIGN(sizeof(Kept)));
	entries = (Entry *) ((char *) buckets + MAXALIGN(n * sizeof(int)));
	next_block = (int *) ((char *) entries + MAXALIGN(n * sizeof(Entry)));
	blocks = (char *) next_block + MAXALIGN(n * sizeof(int));
	if (!found)
		clear();
	LWLockRelease(AddinShmemInitLock);
}

void
syn_kept_init(void)
{
	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = request_shared_memory;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = start_shared_memory;
}

Size
syn_kept_limit(void)
{
	return (Size) kept->nblocks * BLOCK / 4;
}

static bool
same_key(const SynKeptKey *a, const SynKeptKey *b)
{
	return a->database == b->database && a->scope_no == b->scope_no && memcmp(a->schema_hash, b->schema_hash, SYN_HASH_LEN) == 0;
}

/* Where the number of the entry with this key stands, or would stand. */
static int *
find(const SynKeptKey *key)
{
	int		   *at = &buckets[hash_combine(murmurhash32((uint32) key->scope_no), murmurhash32(key->database)) % kept->nblocks];

	while (*at != NONE && !same_key(&entries[*at].key, key))
		at = &entries[*at].next;
	return at;
}

/* Gives back the entry whose number stands there, and its blocks. */
static void
give_back(int *at)
{
	int			number = *at;
	Entry	   *e = &entries[number];

	*at = e->next;
	for (int block = e->first; block != NONE;)
	{
		int			next = next_block[block];

		next_block[block] = kept->free_block;
		kept->free_block = block;
		kept->free_blocks++;
		block = next;
	}
	e->taken = false;
	e->next = kept->free_entry;
	kept->free_entry = number;
}

/* Until so many blocks are free. Entries that were used since the hand was here get another round. */
static void
make_room(int wanted)
{
	while (kept->free_blocks < wanted)
	{
		Entry	   *e = &entries[kept->hand];

		kept->hand = (kept->hand + 1) % kept->nblocks;
		if (e->taken && pg_atomic_exchange_u32(&e->used, 0) == 0)
			give_back(find(&e->key));
	}
}

bool
syn_kept_fetch(const SynKeptKey *key, SynKeptState *state, SynScopeRows *rows)
{
	bool		found = false;

	if (kept->nblocks == 0)
		return false;
	LWLockAcquire(kept->lock, LW_SHARED);
	for (int number = *find(key); number != NONE; number = NONE)
	{
		Entry	   *e = &entries[number];
		int			block = e->first;

		found = true;
		pg_atomic_write_u32(&e->used, 1);
		*state = e->state;
		syn_rows_reset(rows, e->len + e->marks);
		rows->count = e->count;
		for (Size left = e->len + e->marks; left > 0; block = next_block[block])
		{
			int			n = Min(left, BLOCK);

			appendBinaryStringInfo(&rows->data, blocks + (Size) block * BLOCK, n);
			left -= n;
		}
		appendBinaryStringInfo(&rows->marks, rows->data.data + e->len, e->marks);
		rows->data.len = e->len;
	}
	LWLockRelease(kept->lock);
	return found;
}

/* Copies octets from an offset on: the rows, and behind them their marks. */
static void
copy_octets(char *to, const SynScopeRows *rows, Size from, Size n)
{
	Size		len = rows->data.len;
	Size		of_rows = from < len ? Min(len - from, n) : 0;

	memcpy(to, rows->data.data + from, of_rows);
	if (of_rows < n)
		memcpy(to + of_rows, rows->marks.data + (from + of_rows - len), n - of_rows);
}

void
syn_kept_store(const SynKeptKey *key, const SynKeptState *state, const SynScopeRows *rows)
{
	Size		len = rows->data.len + rows->marks.len;
	int			wanted = Max((len + BLOCK - 1) / BLOCK, 1);	/* so entries don't run out before blocks do */
	int		   *at;

	if (!rows->complete || len > syn_kept_limit() || kept->nblocks == 0)
		return;
	LWLockAcquire(kept->lock, LW_EXCLUSIVE);
	at = find(key);
	if (*at == NONE || entries[*at].state.high <= state->high)
	{
		Entry	   *e;
		int		   *link;

		if (*at != NONE)
			give_back(at);
		make_room(wanted);
		at = find(key);
		*at = kept->free_entry;
		e = &entries[*at];
		kept->free_entry = e->next;
		e->next = NONE;
		e->key = *key;
		e->state = *state;
		e->count = rows->count;
		e->len = rows->data.len;
		e->marks = rows->marks.len;
		e->taken = true;
		pg_atomic_write_u32(&e->used, 1);
		link = &e->first;
		for (int i = 0; i < wanted; i++)
		{
			Size		done = (Size) i * BLOCK;
			int			block = kept->free_block;

			kept->free_block = next_block[block];
			kept->free_blocks--;
			copy_octets(blocks + (Size) block * BLOCK, rows, done, Min(len - done, BLOCK));
			*link = block;
			link = &next_block[block];
		}
		*link = NONE;
	}
	LWLockRelease(kept->lock);
}
