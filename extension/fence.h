/*
 * fence.h
 *		Fences: one authenticated message per row operation on a registered relation.
 */
#ifndef SYNCHRO_FENCE_H
#define SYNCHRO_FENCE_H

#include "postgres.h"

#include "executor/tuptable.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "utils/jsonb.h"
#include "utils/rel.h"
#include "utils/reltrigger.h"

#include "random.h"

struct SynCodec;

/* Names of the triggers, and of their functions. */
#define FENCE_TRIGGER "synchro_fence"
#define KEY_GUARD_TRIGGER "synchro_key_guard"
#define TRUNCATE_GUARD_TRIGGER "synchro_truncate_guard"

/* Arguments of the fence trigger: all that the hot path needs, so that it reads no table. */
typedef enum FenceArg
{
	FENCE_ARG_REL_NO,
	FENCE_ARG_KIND,				/* s synced, d capture dependency */
	FENCE_ARG_RELATION_ID,
	FENCE_ARG_TABLE_ID,			/* empty for kind d */
	FENCE_ARG_RELATION,			/* qualified name of the registered root */
	FENCE_ARG_KEY,				/* attribute numbers are those of the root; lists are separated by blanks */
	FENCE_ARG_SYNCED,
	FENCE_ARG_AS_TEXT,			/* synced as canonical text, a subset of synced */
	FENCE_ARG_REQUIRED,			/* synced and not null for clients, a subset of synced */
	FENCE_ARG_GENERATED,		/* captured stored generated columns */
	FENCE_ARGS
} FenceArg;

/* A synced column: must hold values with a portable form only. */
typedef struct FenceColumn
{
	AttrNumber	attno;
	bool		byval;
	int16		len;
	bool		required;		/* nothing but the fence refuses NULL any more */
	bool		text_helps;		/* registered as text, it could hold any value */
	const struct SynCodec *codec;	/* NULL: the type has no portable form */
} FenceColumn;

/* A captured stored generated column: its value travels in the fence. */
typedef struct FenceGenerated
{
	AttrNumber	root_attno;
	AttrNumber	attno;
	FmgrInfo	output;
} FenceGenerated;

/* One relation's trigger arguments, made ready once per query. */
typedef struct Fence
{
	int			rel_no;
	char		kind;
	bool		partition;		/* registered through its root */
	AttrNumber	key;
	bool		key_byval;
	int16		key_len;
	FmgrInfo	key_output;
	int			ncolumns;
	FenceColumn *columns;
	AttrNumber	last_column;	/* highest attribute number in columns */
	int			ngenerated;
	FenceGenerated *generated;
	StringInfoData message;		/* starts with what all fences of the relation have in common */
	int			message_start;
	int			ordinal_at;		/* offset of the first member that differs */
} Fence;

/* What is kept of a fence in push context. */
typedef struct PushedFence
{
	int			rel_no;
	const char *key;
	TransactionId xmin;			/* raw, of the new tuple; invalid for D */
	char		version[SYN_VERSION_LEN + 1];
	char		op;
	uint64		ordinal;
	SubTransactionId subid;
	int			previous;		/* fence of the same hash chain, or -1 */
} PushedFence;

/* fence_args.c */
extern Fence *fence_prepare(Relation rel, const Trigger *trigger, MemoryContext context);

/* fence_check.c */
extern void fence_check_key(Relation rel, AttrNumber attno, const char *key);
extern void fence_check_row(const Fence *fence, Relation rel, TupleTableSlot *new_slot, TupleTableSlot *old_slot, HeapTuple new_tuple);

/* fence_rows.c */
extern void fence_write_tombstone(int rel_no, const char *key, const char *version);
extern void fence_write_push_rows(const PushedFence *fences, int n);

/* fence_pushed.c: fences in push context, those of undone subtransactions excepted. fence_pushed_store writes and forgets them. */
extern void fence_pushed_add(const PushedFence *fence);
extern const PushedFence *fence_pushed_last(int rel_no, const char *key);
extern int	fence_pushed_count(void);
extern void fence_pushed_undo(SubTransactionId subid);
extern void fence_pushed_store(void);
extern void fence_pushed_forget(void);

/*
 * fence_context.c: what holds until the transaction ends.
 *
 * In push context fences are also kept for push_fence (fence_pushed.c), and synchro_subject() is user_id. Ends with its subtransaction
 * when that is rolled back. claims may be NULL. fence_push_end never raises. Whoever began the context stores the fences.
 */
extern void fence_push_begin(int64 client_no, const char *user_id, Jsonb *claims);
extern void fence_push_end(void);
extern bool fence_push_active(void);
extern bool fence_sealed(void);
extern uint32 fence_next_sequence(void);

/* Hooks into the start of queries (fence_skip.c). */
extern void fence_skip_init(void);

#endif							/* SYNCHRO_FENCE_H */
