/*
 * push.h
 *		Inside of the push executor: the push_*.c files share it, nobody else needs it.
 *
 * A batch runs in rounds. A round establishes the current version of every target row without holding a lock, then executes the
 * mutations one by one, each in its own subtransaction. A row that changed in between ends the round: everything is undone and the
 * next one begins, so nothing is ever decided on a stale version and nobody waits with row locks held.
 */
#ifndef SYNCHRO_PUSH_H
#define SYNCHRO_PUSH_H

#include "postgres.h"

#include "fmgr.h"
#include "utils/jsonb.h"
#include "utils/timestamp.h"

#include "canonical.h"

/* Codes of outcomes that are not "applied". */
#define PUSH_VERSION_CONFLICT "version_conflict"
#define PUSH_ROW_ALREADY_EXISTS "row_already_exists"
#define PUSH_ROW_DELETED "row_deleted"
#define PUSH_ROW_NOT_FOUND "row_not_found"
#define PUSH_POLICY_REJECTED "policy_rejected"
#define PUSH_VALIDATION_FAILED "validation_failed"
#define PUSH_ATOMIC_REJECTED "atomic_batch_rejected"

typedef struct PushRelation PushRelation;

/* A target row. What is known of it was read before anything was locked. */
typedef struct PushRow
{
	PushRelation *rel;
	char	   *key_text;
	Datum		key;
	TransactionId xmin;			/* of the version that was visible; invalid: none was */
	TransactionId marked;		/* the same when the last marker was written */
	int			misses;			/* markers after which the projection still lacked it */
	const char *version;		/* of that row version; NULL: not established */
} PushRow;

/* A synced column: how wire values become values of it. */
typedef struct PushColumn
{
	const SynField *field;
	char	   *name;			/* quoted */
	Oid			typid;
	int32		typmod;
	bool		pinned;			/* settings say how its type reads text */
	bool		has_input;		/* the input function is looked up */
	FmgrInfo	input;
	Oid			ioparam;
} PushColumn;

struct PushRelation
{
	int			rel_no;
	Oid			relid;
	Oid			owner;
	Oid			rowtype;
	const SynRelation *fields;
	PushColumn *columns;		/* parallel to fields->fields */
	PushColumn *key;
	FmgrInfo	key_output;
	Oid			key_array;		/* array type of the key */
	char	   *source;			/* qualified, quoted */
	char	   *deleted;		/* deletion column, quoted; NULL: rows are deleted for good */
	const char *deletion_time;	/* SQL expression for it */
	bool		plain;			/* a write does nothing but write: no rule, no trigger that could change anything else */
	FmgrInfo	row_json;		/* _row_json and _row_digest, with their caches */
	FmgrInfo	row_digest;
	int			nrows;
	PushRow   **rows;			/* targets, by key text */
};

typedef enum PushOp
{
	PUSH_INSERT,
	PUSH_UPDATE,
	PUSH_DELETE
} PushOp;

typedef struct PushMutation
{
	int			ord;			/* 1-based place in the request */
	PushOp		op;
	PushRelation *rel;
	PushRow    *row;			/* NULL: the key is not one of the column's type */
	const JcsNode *pk;
	const JcsNode *columns;		/* NULL: none */
	char	   *base_version;	/* NULL for an insert */
	const char *column;			/* whose value is being converted */

	/* outcome */
	Datum		written;		/* the row as it was written and as it stands; 0: to be read back */
	bool		stale;			/* the row changed under us: the round must be repeated */
	const char *code;			/* NULL: applied */
	const char *message;
	const char *server_version;
	char	   *server_row;
	bytea	   *row_digest;
} PushMutation;

typedef struct PushBatch
{
	MemoryContext mcxt;
	int64		client_no;
	const char *user_id;
	Jsonb	   *claims;
	int64		schema_version;
	bool		atomic;
	Oid			writer;			/* synchro_writer */
	bool		application;	/* code of the application may be running */
	int			nmutations;
	PushMutation *mutations;
	int			nrelations;
	PushRelation *relations;
} PushBatch;

/* A row version as the writer sees it. */
typedef struct PushImage
{
	TransactionId xmin;
	bool		deleted;		/* softly */
	Datum		row;			/* composite; 0 when only locked */
} PushImage;

typedef enum PushSelect
{
	PUSH_READ,					/* the whole row, no lock */
	PUSH_LOCK_UPDATE,
	PUSH_LOCK_DELETE
} PushSelect;

/* A role to return to. */
typedef struct PushRole
{
	Oid			user;
	int			sec;
} PushRole;

typedef enum PushRound
{
	PUSH_ROUND_KEEP,
	PUSH_ROUND_UNDO,			/* a failed group: outcomes stand, writes don't */
	PUSH_ROUND_STALE			/* a row changed since its version was established: once more */
} PushRound;

/* push_prepare.c */
extern void push_prepare(PushBatch *batch, const JcsNode *mutations, const int *rel_nos, const bool *skip, int n);

/* push_relation.c */
extern void push_describe(PushRelation *rel, int64 schema_version, const char *deleted_column);
extern void push_registration_moved(void);
extern bool push_is_plain(Oid relid);

/* push_mutation.c, push_outcome.c */
extern PushRound push_round(PushBatch *batch);
extern void push_show(PushBatch *batch, PushMutation *m, const PushImage *image, const char *version);
extern void push_reject(PushMutation *m, const char *code, const char *message);
extern bool push_find_conflict(PushBatch *batch, void *subject);
extern void push_missing(PushBatch *batch, PushMutation *m);
extern bool push_read_back(PushBatch *batch, void *subject);

/* push_version.c */
extern void push_establish_versions(PushBatch *batch, TimestampTz deadline);
extern const char *push_current_version(PushRow *row, TransactionId xmin);
extern const char *push_last_fence(PushRow *row, char *op, TransactionId *xmin);
extern const char *push_tombstone(PushRow *row);

/* push_write.c */
extern bool push_select(PushBatch *batch, PushRow *row, PushSelect mode, PushImage *image);
extern void push_enter(PushBatch *batch, PushRole *saved);
extern void push_leave(PushBatch *batch, const PushRole *saved);
extern bool push_exists_unfiltered(PushRow *row);
extern bool push_values(PushBatch *batch, PushMutation *m, Datum *values, char *nulls);
extern bool push_insert(PushBatch *batch, PushMutation *m, Datum *values, char *nulls);
extern bool push_update(PushBatch *batch, PushMutation *m, Datum *values, char *nulls);
extern bool push_delete(PushBatch *batch, PushMutation *m);
extern bool push_swap(PushBatch *batch, PushMutation *m, Datum *values, char *nulls);
extern void push_constraints(PushBatch *batch, bool deferred);

/* push_sql.c */
extern void push_become(PushRole *saved, Oid role, int flags);
extern void push_unbecome(const PushRole *saved);
extern uint64 push_exec(const char *sql, int nargs, const Oid *types, const Datum *args, const char *nulls);
extern Datum push_column(uint64 row, int column, bool *isnull);

/* push_error.c */
typedef bool (*PushWork) (PushBatch *batch, void *subject);

extern ErrorData *push_subtransaction(PushBatch *batch, PushWork work, void *subject, bool *kept);
extern bool push_key_violation(const ErrorData *error, const PushRelation *rel);
extern bool push_error_is_outcome(const ErrorData *error, bool application);
extern void push_error_outcome(ErrorData *error, bool application, PushMutation *m);

/* push_guard.c */
extern void push_require_nothing_deferred(const char *message);

/* push_read.c */
extern const JcsNode *push_mutations(const text *request);
extern void push_require_shape(const JcsNode *mutation);

/* canonical_push.c: fingerprints as bytea; they check the whole shape and raise invalid_request. */
extern Datum syn_batch_fingerprint(JcsNode *request, const char *user);
extern Datum syn_mutation_fingerprint(JcsNode *mutation, const char *user, const JcsNode *client);

/* push_session.c */
extern void push_session_init(void);
extern bool push_temp_enter(void);
extern bool push_temp_leave(bool before);

#endif							/* SYNCHRO_PUSH_H */
