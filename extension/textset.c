/*
 * textset.c
 *		Texts of one row or user while they stream in: without duplicates, within bounds, in octet order.
 */
#include "postgres.h"

#include "compat.h"
#include "seceval.h"

#define SMALL_SET 64

void
text_set_init(TextSet *set, int sqlstate, int limit, const char *too_many)
{
	set->sqlstate = sqlstate;
	set->limit = limit;
	set->too_many = too_many;
	set->n = 0;
	set->allocated = SMALL_SET;
	set->refs = palloc(sizeof(TextRef) * set->allocated);
	initStringInfo(&set->bytes);
	initStringInfo(&set->item);
}

void
text_set_clear(TextSet *set)
{
	set->n = 0;
	resetStringInfo(&set->bytes);
}

static int
compare_refs(const void *a, const void *b, void *arg)
{
	const char *bytes = arg;
	const TextRef *left = a;
	const TextRef *right = b;
	int			order = memcmp(bytes + left->offset, bytes + right->offset, Min(left->len, right->len));

	return order != 0 ? order : left->len - right->len;
}

void
text_set_finish(TextSet *set)
{
	int			distinct = 0;

	if (set->n > 1)
	{
		qsort_arg(set->refs, set->n, sizeof(TextRef), compare_refs, set->bytes.data);
		for (int i = 0; i < set->n; i++)
			if (distinct == 0 || compare_refs(&set->refs[distinct - 1], &set->refs[i], set->bytes.data) != 0)
				set->refs[distinct++] = set->refs[i];
		set->n = distinct;
	}
	if (set->limit > 0 && set->n > set->limit)
		syn_evaluation_failed(set->sqlstate, set->too_many);
}

/* Gives back the octets of dropped duplicates. */
static void
compact(TextSet *set)
{
	char	   *old = palloc(set->bytes.len);

	memcpy(old, set->bytes.data, set->bytes.len);
	resetStringInfo(&set->bytes);
	for (int i = 0; i < set->n; i++)
	{
		int			offset = set->bytes.len;

		appendBinaryStringInfo(&set->bytes, old + set->refs[i].offset, set->refs[i].len);
		set->refs[i].offset = offset;
	}
	pfree(old);
}

static void
append_text(TextSet *set, const char *data, int len)
{
	if (set->n == set->allocated)
	{
		/* duplicates first: memory follows the bound, not the number of results */
		text_set_finish(set);
		compact(set);
		if (set->n > set->allocated / 2)
		{
			set->allocated *= 2;
			set->refs = repalloc(set->refs, sizeof(TextRef) * set->allocated);
		}
	}
	set->refs[set->n].offset = set->bytes.len;
	set->refs[set->n].len = len;
	set->n++;
	appendBinaryStringInfo(&set->bytes, data, len);
}

void
text_set_add(TextSet *set, const char *data, int len)
{
	/* repetitions of the last one are common (joins) and free */
	if (set->n > 0 && set->refs[set->n - 1].len == len &&
		memcmp(set->bytes.data + set->refs[set->n - 1].offset, data, len) == 0)
		return;
	append_text(set, data, len);
}

/* Text i, until the next call. */
Datum
text_set_get(TextSet *set, int i)
{
	int			len = set->refs[i].len;

	resetStringInfo(&set->item);
	enlargeStringInfo(&set->item, VARHDRSZ + len);
	SET_VARSIZE(set->item.data, VARHDRSZ + len);
	memcpy(VARDATA(set->item.data), set->bytes.data + set->refs[i].offset, len);
	return PointerGetDatum(set->item.data);
}
