/*
 * evaluate.h
 *		Set-based evaluation of a registered function.
 */
#ifndef SYNCHRO_EVALUATE_H
#define SYNCHRO_EVALUATE_H

#include "postgres.h"

#include "executor/tuptable.h"
#include "fmgr.h"
#include "tcop/dest.h"
#include "utils/array.h"
#include "utils/tuplestore.h"

#include "rule.h"
#include "seceval.h"

#define MAX_ARGUMENTS 2

/* What the function of a kind takes and gives. */
typedef struct FunctionShape
{
	int			nargs;
	const char *columns;		/* of its result row f, as the evaluating query selects them */
	const char *alias;
	const char *failure;		/* when it raises an error */
} FunctionShape;

typedef struct Evaluation Evaluation;

/* Adds what a result row says to ev->texts; its values start at column first. Runs as the function's owner. */
typedef void (*AddResult) (Evaluation *ev, TupleTableSlot *slot, int first);

struct Evaluation
{
	DestReceiver receiver;		/* must be first */
	const FunctionShape *shape;
	AddResult	add;
	Rule	   *rule;
	Oid			types[MAX_ARGUMENTS];
	ArrayType  *inputs[MAX_ARGUMENTS];	/* of those types, all of one length */
	int			ninputs;
	bool		sorted;
	bool		out_of_order;	/* results of one input did not come together */
	int64		ord;			/* input whose results are being collected; 0: none yet */
	TextSet		texts;
	Tuplestorestate *result;	/* rows (ord int, text) */
	TupleDesc	result_desc;
};

/* The evaluation of a set-returning function (ord int, text) that has just been called. Inputs and texts are the caller's to fill in. */
extern Evaluation *evaluation_begin(FunctionCallInfo fcinfo, const FunctionShape *shape, AddResult add, Rule *rule);

/* Results in the order of the inputs, and for each in octet order without duplicates. */
extern void evaluation_run(Evaluation *ev);

#endif							/* SYNCHRO_EVALUATE_H */
