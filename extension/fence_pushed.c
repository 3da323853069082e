/*
 * fence_pushed.c
 *		The fences of a push, until it is over.
 *
 * A push asks for the last fence of a row after each of its writes, and other pushes must find its versions in push_fence once it
 * has committed, not before. So they stay in memory and are written with one statement at the end. A fence whose subtransaction is
 * undone is forgotten: ids of subtransactions grow, so those of one that ends, and of all inside it, are the last in the list.
 */
#include "postgres.h"

#include "access/xact.h"
#include "common/hashfn.h"
#include "utils/memutils.h"

#include "fence.h"

/* Initial room; always a power of two, for as many hash chains. */
#define MIN_ROOM 128

static PushedFence *fences;		/* in context, as the chains are */
static int *chains;				/* by hash of the row: its newest fence, or -1 */
static int	count;
static int	room;
static MemoryContext context;	/* child of TopTransactionContext */

static int *
chain_of(int rel_no, const char *key)
{
	return &chains[(hash_bytes((const unsigned char *) key, strlen(key)) ^ (uint32) rel_no) & (room - 1)];
}

static void
link_fence(int i)
{
	int		   *chain = chain_of(fences[i].rel_no, fences[i].key);

	fences[i].previous = *chain;
	*chain = i;
}

/* In an order in which a failure to get memory leaves everything as it was: the fences before it may still have to be undone. */
static void
make_room(void)
{
	int			wanted = Max(2 * room, MIN_ROOM);
	int		   *wider;

	if (count < room)
		return;
	if (context == NULL)
		context = AllocSetContextCreate(TopTransactionContext, "synchro fences of a push", ALLOCSET_DEFAULT_SIZES);
	wider = MemoryContextAllocHuge(context, sizeof(int) * wanted);
	fences = room == 0 ? MemoryContextAlloc(context, sizeof(PushedFence) * wanted) :
		repalloc_huge(fences, sizeof(PushedFence) * wanted);
	if (room > 0)
		pfree(chains);
	chains = wider;
	room = wanted;
	memset(chains, 0xFF, sizeof(int) * room);
	for (int i = 0; i < count; i++)
		link_fence(i);
}

void
fence_pushed_add(const PushedFence *fence)
{
	make_room();
	fences[count] = *fence;
	fences[count].key = MemoryContextStrdup(context, fence->key);
	fences[count].subid = GetCurrentSubTransactionId();
	link_fence(count);
	count++;
}

const PushedFence *
fence_pushed_last(int rel_no, const char *key)
{
	const PushedFence *last = NULL;

	if (count == 0)
		return NULL;
	for (int i = *chain_of(rel_no, key); i >= 0; i = fences[i].previous)
		if (fences[i].rel_no == rel_no && strcmp(fences[i].key, key) == 0 && (!last || fences[i].ordinal > last->ordinal))
			last = &fences[i];
	return last;
}

int
fence_pushed_count(void)
{
	return count;
}

void
fence_pushed_undo(SubTransactionId subid)
{
	for (; count > 0 && fences[count - 1].subid >= subid; count--)
		*chain_of(fences[count - 1].rel_no, fences[count - 1].key) = fences[count - 1].previous;
}

void
fence_pushed_store(void)
{
	if (count > 0)
		fence_write_push_rows(fences, count);
	fence_pushed_forget();
}

void
fence_pushed_forget(void)
{
	if (context)
		MemoryContextDelete(context);
	context = NULL;
	count = room = 0;
}
