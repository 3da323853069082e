/*
 * apply_tell.c
 *		Tells the worker of rows in a projection what their entries are made of.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "apply.h"
#include "compat.h"
#include "random.h"

/* Arguments 0 to 3 are relation, schema version, and the columns of its key and of deleted_at, 0: none. */
void
tell_begin(Teller *t, FunctionCallInfo fcinfo)
{
	Relation	rel;

	t->context = CurrentMemoryContext;
	t->rel_no = PG_GETARG_INT32(0);
	t->schema_version = PG_GETARG_INT64(1);
	t->bulk = bulk_open(apply_projection(t->rel_no));
	rel = t->bulk->rel;
	t->key = apply_captured_column(rel, PG_GETARG_INT16(2));
	t->deleted = PG_GETARG_INT16(3) != 0 ? apply_captured_column(rel, PG_GETARG_INT16(3)) : -1;
	t->version = apply_column(rel, "server_version");
	t->scopes = apply_column(rel, "scopes");
	initStringInfo(&t->scratch);
	initStringInfo(&t->out);
	appendStringInfoSpaces(&t->out, VARHDRSZ);
}

/* Bits, key octets, digest, scopes that hold it so far (a new row's are only a placeholder), tid; returns where the tid goes. */
int
tell(Teller *t, TupleTableSlot *slot, const char *version, uint8 bits)
{
	const SynRelation *rel;
	const SynValue *values;
	StringInfo	out = &t->out;
	ArrayType  *scopes = bits & TOLD_NEW ? NULL : DatumGetArrayTypeP(slot->tts_values[t->scopes]);
	uint8		digest[SYN_HASH_LEN];
	int			start;
	uint16		len;
	int			n = scopes && ARR_NDIM(scopes) > 0 ? ARR_DIMS(scopes)[0] : 0;

	values = syn_read_values(&t->reader, t->rel_no, t->schema_version, t->bulk->rel->rd_rel->reltype, slot->tts_values,
							 slot->tts_isnull, &rel, t->context);
	syn_row_digest(rel, values, version, SYN_VERSION_LEN, &t->scratch, digest);
	appendStringInfoChar(out, (t->deleted >= 0 && !slot->tts_isnull[t->deleted] ? TOLD_SOFT : 0) | bits);
	start = out->len;
	appendBinaryStringInfo(out, "\0\0", 2);
	syn_key_append_bytes(out, &values[rel->key]);
	len = pg_hton16(out->len - start - 2);
	memcpy(out->data + start, &len, sizeof(len));
	appendBinaryStringInfo(out, (char *) digest, SYN_HASH_LEN);
	len = pg_hton16(n);
	appendBinaryStringInfo(out, (char *) &len, sizeof(len));
	for (int i = 0; i < n; i++)
		syn_append_u64(out, ((int64 *) ARR_DATA_PTR(scopes))[i]);
	start = out->len;
	appendBinaryStringInfo(out, "\0\0\0\0\0\0", 6);
	return start;
}

void
tell_tid(Teller *t, int at, ItemPointer tid)
{
	uint32		block = pg_hton32(ItemPointerGetBlockNumber(tid));
	uint16		offset = pg_hton16(ItemPointerGetOffsetNumber(tid));

	memcpy(t->out.data + at, &block, sizeof(block));
	memcpy(t->out.data + at + sizeof(block), &offset, sizeof(offset));
}

bytea *
tell_end(Teller *t)
{
	bulk_close(t->bulk);
	SET_VARSIZE(t->out.data, t->out.len);
	return (bytea *) t->out.data;
}

/* Tells of the row in bulk->found, which was looked for by a key's text. */
static void
tell_found(Teller *t, const char *key, FmgrInfo *output)
{
	TupleTableSlot *slot = t->bulk->found;
	text	   *version;

	slot_getallattrs(slot);
	/* A row has one identity: another spelling of its key would be another row to the worker. */
	if (strcmp(OutputFunctionCall(output, slot->tts_values[t->key]), key) != 0)
		ereport(ERROR, (errcode(SYNCHRO_ERR_INVALID_PARAMETER), errmsg("a key is not in canonical form")));
	version = DatumGetTextPP(slot->tts_values[t->version]);
	if (VARSIZE_ANY_EXHDR(version) != SYN_VERSION_LEN)
		elog(ERROR, "a version is not one of ours");
	tell_tid(t, tell(t, slot, VARDATA_ANY(version), 0), &slot->tts_tid);
	appendBinaryStringInfo(&t->out, VARDATA_ANY(version), SYN_VERSION_LEN);
}

PG_FUNCTION_INFO_V1(synchro_read_rows);

/* _read_rows(rel_no int, schema_version bigint, key_attnum smallint, deleted_attnum smallint, keys text[]) bytea */
Datum
synchro_read_rows(PG_FUNCTION_ARGS)
{
	Teller		t = {0};
	MemoryContext caller;
	Datum	   *keys;
	bool	   *nulls;
	int			nkeys;
	Oid			type;
	Oid			function;
	Oid			param;
	bool		varlena;
	FmgrInfo	input;
	FmgrInfo	output;

	tell_begin(&t, fcinfo);
	deconstruct_array(PG_GETARG_ARRAYTYPE_P(4), TEXTOID, -1, false, TYPALIGN_INT, &keys, &nulls, &nkeys);
	type = TupleDescAttr(t.bulk->desc, t.key)->atttypid;
	getTypeInputInfo(type, &function, &param);
	fmgr_info(function, &input);
	getTypeOutputInfo(type, &function, &varlena);
	fmgr_info(function, &output);
	caller = MemoryContextSwitchTo(t.bulk->rows);
	for (int i = 0; i < nkeys; i++)
	{
		char	   *given;
		Datum		key;

		if (nulls[i])
			ereport(ERROR, (errcode(SYNCHRO_ERR_INVALID_PARAMETER), errmsg("a key is null")));
		given = TextDatumGetCString(keys[i]);
		key = InputFunctionCall(&input, given, param, -1);
		if (bulk_find_next(t.bulk, &key))
			tell_found(&t, given, &output);
		else
			appendStringInfoChar(&t.out, TOLD_ABSENT);
		MemoryContextReset(t.bulk->rows);
	}
	MemoryContextSwitchTo(caller);
	PG_RETURN_BYTEA_P(tell_end(&t));
}
