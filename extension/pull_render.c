/*
 * pull_render.c
 *		Changes of a page as clients get them, each with its row from the projection.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "compat.h"
#include "errcodes.h"
#include "jcs.h"
#include "pull_page.h"

/*
 * Row content that a page holds at most, uncompressed, unless a single row is larger: far below what a server can assemble and a
 * client takes.
 */
#define PAGE_OCTETS INT64CONST(16777216)

PG_FUNCTION_INFO_V1(synchro_page_octets);

Datum
synchro_page_octets(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(PAGE_OCTETS);
}

void
syn_page_damaged(const char *what)
{
	ereport(ERROR,
			(errcode(SYNCHRO_ERR_SYNC_INTEGRITY_FAILURE),
			 errmsg("materialized state is damaged"),
			 errdetail("An effect has %s.", what)));
}

static void
open_part(PagePart *part)
{
	char		name[NAMEDATALEN];
	Oid			opr;

	if (part->open)
		return;
	if (!syn_lookup_open_projection(&part->rows, part->rel_no))
		syn_page_damaged("no projection");
	part->open = true;
	snprintf(name, sizeof(name), "c%d", part->rel->fields[part->rel->key].attnum);
	part->key_column = syn_lookup_column(&part->rows, name);
	part->version_column = syn_lookup_column(&part->rows, "server_version");
	part->key_type = TupleDescAttr(RelationGetDescr(part->rows.table), part->key_column - 1)->atttypid;
	getTypeInputInfo(part->key_type, &part->key_input, &part->key_ioparam);
	opr = lookup_type_cache(part->key_type, TYPECACHE_EQ_OPR)->eq_opr;
	if (!OidIsValid(opr))
		elog(ERROR, "a key type has no equality operator");
	part->key_equal = get_opcode(opr);
}

/* Makes the projection row of an effect the current one of its part; it must have the version of the effect. */
static void
find_row(const PageEntry *e, const SynValue *key)
{
	PagePart   *part = e->part;
	StringInfoData text;
	bool		isnull;
	struct varlena *version;

	open_part(part);
	initStringInfo(&text);
	syn_key_append_text(&text, key);
	syn_lookup_key(&part->rows, BTEqualStrategyNumber, part->key_equal,
				   OidInputFunctionCall(part->key_input, text.data, part->key_ioparam, -1));
	pfree(text.data);
	syn_lookup_begin(&part->rows);
	if (!syn_lookup_next(&part->rows))
		syn_page_damaged("no projection row");
	version = PG_DETOAST_DATUM_PACKED(slot_getattr(part->rows.slot, part->version_column, &isnull));
	if (VARSIZE_ANY_EXHDR(version) != e->version.len || memcmp(VARDATA_ANY(version), e->version.data, e->version.len) != 0)
		syn_page_damaged("no projection row of its version");
}

/* Octets of the current row's values as they would be uncompressed, without fetching any. */
static int64
row_size(const PagePart *part)
{
	TupleTableSlot *slot = part->rows.slot;
	TupleDesc	desc = slot->tts_tupleDescriptor;
	int64		size = 0;

	for (int i = 0; i < desc->natts; i++)
		if (TupleDescAttr(desc, i)->attlen == -1 && !slot->tts_isnull[i])
			size += toast_raw_datum_size(slot->tts_values[i]);
	return size;
}

/* Appends the members row and row_checksum. */
static void
append_row(StringInfo out, const PageEntry *e, int64 schema_version, StringInfo scratch)
{
	PagePart   *part = e->part;
	TupleTableSlot *slot = part->rows.slot;
	const SynRelation *rel;
	const SynValue *values = syn_read_values(&part->reader, part->rel_no, schema_version, part->rows.table->rd_rel->reltype,
											 slot->tts_values, slot->tts_isnull, &rel, CurrentMemoryContext);
	uint8		digest[SYN_HASH_LEN];

	appendStringInfoString(out, ",\"row\":");
	syn_append_row_json(out, rel, values);
	if (e->current)
		memcpy(digest, e->digest, SYN_HASH_LEN);
	else
		syn_row_digest(rel, values, e->version.data, e->version.len, scratch, digest);
	appendStringInfoString(out, ",\"row_checksum\":{\"algorithm\":\"sha256\",\"version\":1,\"encoding\":\"hex\",\"digest\":\"");
	enlargeStringInfo(out, 2 * SYN_HASH_LEN + 4);
	out->len += hex_encode((const char *) digest, SYN_HASH_LEN, out->data + out->len);
	out->data[out->len] = '\0';
	appendStringInfoString(out, "\"}");
}

int
syn_render_changes(StringInfo out, PageEntry *entries, int n, const SynPageCursor *cursors, int64 schema_version)
{
	int64		octets = 0;
	StringInfoData scratch;
	int			done;

	initStringInfo(&scratch);
	for (done = 0; done < n; done++)
	{
		const PageEntry *e = &entries[done];
		const SynRelation *rel = e->part->rel;
		SynValue	key;

		CHECK_FOR_INTERRUPTS();
		if (!syn_key_from_bytes(rel->fields[rel->key].type, e->key.data, e->key.len, &key))
			syn_page_damaged("a malformed key");
		if (e->state != 'x')
		{
			find_row(e, &key);
			slot_getallattrs(e->part->rows.slot);
			octets += row_size(e->part);
			if (octets > PAGE_OCTETS && done > 0)
				break;
		}
		if (done > 0)
			appendStringInfoChar(out, ',');
		appendStringInfoString(out, "{\"scope\":");
		jcs_append_string(out, cursors[e->scope].scope_id.data, cursors[e->scope].scope_id.len);
		appendStringInfo(out, ",\"table\":\"%s\",\"op\":\"%s\",\"pk\":{\"%s\":", rel->table_id, e->state == 'l' ? "upsert" : "delete",
						 rel->fields[rel->key].field_id);
		syn_append_json(out, &key);
		appendStringInfoChar(out, '}');
		if (e->state != 'x')
			append_row(out, e, schema_version, &scratch);
		appendStringInfoString(out, ",\"server_version\":");
		jcs_append_string(out, e->version.data, e->version.len);
		appendStringInfoChar(out, '}');
		if (octets > PAGE_OCTETS)
		{
			done++;
			break;
		}
	}
	return done;
}
