/*
 * lookup.c
 *		Rows of our own tables by index, without a plan.
 *
 * A pull that brings nothing reads some thirty rows, each by a key. Statements for that cost several times what the reading costs,
 * and their plans depend on what the tables held when they were made. Everything is read under the active snapshot. Nothing
 * checks privileges: the caller serves a request as the owner of the tables.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/tableam.h"
#include "catalog/namespace.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"

#include "compat.h"
#include "lookup.h"

static Oid
relation_named(const char *name)
{
	Oid			relid = get_relname_relid(name, get_namespace_oid("synchro", false));

	if (!OidIsValid(relid))
		elog(ERROR, "there is no relation synchro.%s", name);
	return relid;
}

void
syn_lookup_open(SynLookup *lookup, const char *table, const char *index)
{
	memset(lookup, 0, sizeof(*lookup));
	lookup->table = table_open(relation_named(table), AccessShareLock);
	lookup->index = index_open(relation_named(index), AccessShareLock);
	lookup->slot = table_slot_create(lookup->table, NULL);
}

bool
syn_lookup_open_projection(SynLookup *lookup, int rel_no)
{
	char		name[NAMEDATALEN];
	Oid			relid;

	snprintf(name, sizeof(name), "r_%d", rel_no);
	relid = get_relname_relid(name, get_namespace_oid("synchro_data", false));
	if (!OidIsValid(relid))
		return false;
	memset(lookup, 0, sizeof(*lookup));
	lookup->table = table_open(relid, AccessShareLock);
	list_free(RelationGetIndexList(lookup->table));	/* finds the primary key */
	if (!OidIsValid(lookup->table->rd_pkindex))
	{
		table_close(lookup->table, AccessShareLock);
		return false;
	}
	lookup->index = index_open(lookup->table->rd_pkindex, AccessShareLock);
	lookup->slot = table_slot_create(lookup->table, NULL);
	return true;
}

void
syn_lookup_key(SynLookup *lookup, StrategyNumber strategy, RegProcedure compare, Datum value)
{
	int			n = lookup->nkeys++;

	Assert(n < SYN_LOOKUP_KEYS);
	ScanKeyEntryInitialize(&lookup->keys[n], 0, n + 1, strategy, InvalidOid, lookup->index->rd_indcollation[n], compare, value);
}

static void
add_key(SynLookup *lookup, RegProcedure equal, Datum value)
{
	syn_lookup_key(lookup, BTEqualStrategyNumber, equal, value);
}

void
syn_lookup_int4(SynLookup *lookup, int32 value)
{
	add_key(lookup, F_INT4EQ, Int32GetDatum(value));
}

void
syn_lookup_int8(SynLookup *lookup, int64 value)
{
	add_key(lookup, F_INT8EQ, Int64GetDatum(value));
}

void
syn_lookup_text(SynLookup *lookup, const char *value, int len)
{
	add_key(lookup, F_TEXTEQ, PointerGetDatum(cstring_to_text_with_len(value, len)));
}

void
syn_lookup_begin(SynLookup *lookup)
{
	if (lookup->scan && lookup->scan->numberOfKeys != lookup->nkeys)
	{
		index_endscan(lookup->scan);
		lookup->scan = NULL;
	}
	if (lookup->scan == NULL)
		lookup->scan = syn_index_beginscan(lookup->table, lookup->index, GetActiveSnapshot(), lookup->nkeys);
	index_rescan(lookup->scan, lookup->keys, lookup->nkeys, NULL, 0);
	lookup->nkeys = 0;
}

bool
syn_lookup_next(SynLookup *lookup)
{
	return index_getnext_slot(lookup->scan, ForwardScanDirection, lookup->slot);
}

int
syn_lookup_column(const SynLookup *lookup, const char *name)
{
	TupleDesc	desc = RelationGetDescr(lookup->table);

	for (int i = 0; i < desc->natts; i++)
		if (strcmp(NameStr(TupleDescAttr(desc, i)->attname), name) == 0)
			return i + 1;
	elog(ERROR, "there is no column synchro.%s.%s", RelationGetRelationName(lookup->table), name);
	return 0;					/* keep the compiler quiet */
}

Datum
syn_lookup_get(const SynLookup *lookup, const char *name, bool *isnull)
{
	return slot_getattr(lookup->slot, syn_lookup_column(lookup, name), isnull);
}

Datum
syn_lookup_value(const SynLookup *lookup, const char *name)
{
	bool		isnull;
	Datum		value = syn_lookup_get(lookup, name, &isnull);

	if (isnull)
		elog(ERROR, "synchro.%s.%s is null", RelationGetRelationName(lookup->table), name);
	return value;
}

void
syn_lookup_close(SynLookup *lookup)
{
	if (lookup->scan)
		index_endscan(lookup->scan);
	ExecDropSingleTupleTableSlot(lookup->slot);
	index_close(lookup->index, AccessShareLock);
	table_close(lookup->table, AccessShareLock);
}
