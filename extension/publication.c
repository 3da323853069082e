/*
 * publication.c
 *		Membership of registered relations in the publication, with the rights that this takes (see ddl.c).
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_publication.h"
#include "catalog/pg_publication_namespace.h"
#include "catalog/pg_publication_rel.h"
#include "commands/publicationcmds.h"
#include "fmgr.h"
#include "nodes/makefuncs.h"
#include "nodes/parsenodes.h"
#include "parser/parse_node.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "actas.h"
#include "errcodes.h"
#include "guc.h"

static void
create_publication(void)
{
	CreatePublicationStmt *stmt = makeNode(CreatePublicationStmt);
	ObjectAddress address;
	SynActor	caller;

	stmt->pubname = pstrdup(synchro_publication_name);
	stmt->options = list_make2(makeDefElem("publish", (Node *) makeString("insert, update, delete, truncate"), -1),
							   makeDefElem("publish_via_partition_root", (Node *) makeBoolean(true), -1));
	syn_act_as(&caller, BOOTSTRAP_SUPERUSERID);
	address = CreatePublication(make_parsestate(NULL), stmt);
	CommandCounterIncrement();
	AlterPublicationOwner_oid(address.objectId, syn_owner());
	syn_act_back(&caller);
	CommandCounterIncrement();
}

static void
refuse_publication(const char *message)
{
	ereport(ERROR,
			(errcode(SYNCHRO_ERR_INVALID_CONFIGURATION),
			 errmsg("%s", message),
			 errdetail_internal("{\"error\": {\"code\": \"invalid_registration\", \"reason\": \"invalid_configuration\"}}"),
			 errhint("Drop the publication, or name another one in synchro.publication_name: the extension makes it.")));
}

/* A publication that existed before must be what we would have made. */
static void
check_publication(Oid pubid)
{
	HeapTuple	tuple = SearchSysCache1(PUBLICATIONOID, ObjectIdGetDatum(pubid));
	Form_pg_publication pub;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for publication %u", pubid);
	pub = (Form_pg_publication) GETSTRUCT(tuple);
	if (pub->puballtables || GetPublicationSchemas(pubid) != NIL)
		refuse_publication("the publication must list its tables one by one");
	if (pub->pubowner != syn_owner())
		refuse_publication("the publication must belong to synchro_owner");
	if (!pub->pubinsert || !pub->pubupdate || !pub->pubdelete || !pub->pubtruncate || !pub->pubviaroot)
		refuse_publication("the publication must publish insert, update, delete and truncate through the partition root");
	ReleaseSysCache(tuple);
}

/* The publication, made if it is absent. */
static Oid
ensure_publication(void)
{
	Oid			pubid = get_publication_oid(synchro_publication_name, true);

	if (OidIsValid(pubid))
		check_publication(pubid);
	else
	{
		create_publication();
		pubid = get_publication_oid(synchro_publication_name, false);
	}
	return pubid;
}

PG_FUNCTION_INFO_V1(synchro_ensure_publication);

/* _create_publication() void: a slot must not be older than the publication, or its first change cannot be decoded. */
Datum
synchro_ensure_publication(PG_FUNCTION_ARGS)
{
	ensure_publication();
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(synchro_publish);

/* _publish(relation oid) void */
Datum
synchro_publish(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);
	Relation	rel = table_open(relid, ShareUpdateExclusiveLock);	/* no rename between here and there */
	Oid			pubid = ensure_publication();

	if (!SearchSysCacheExists2(PUBLICATIONRELMAP, ObjectIdGetDatum(relid), ObjectIdGetDatum(pubid)))
	{
		AlterPublicationStmt *stmt = makeNode(AlterPublicationStmt);
		PublicationObjSpec *object = makeNode(PublicationObjSpec);
		SynActor	caller;

		object->pubobjtype = PUBLICATIONOBJ_TABLE;
		object->pubtable = makeNode(PublicationTable);
		object->pubtable->relation = makeRangeVar(get_namespace_name(RelationGetNamespace(rel)),
												  pstrdup(RelationGetRelationName(rel)), -1);
		object->pubtable->relation->inh = false;
		object->location = -1;
		stmt->pubname = pstrdup(synchro_publication_name);
		stmt->pubobjects = list_make1(object);
		stmt->action = AP_AddObjects;
		syn_act_as(&caller, BOOTSTRAP_SUPERUSERID);
		AlterPublication(make_parsestate(NULL), stmt);
		syn_act_back(&caller);
		CommandCounterIncrement();
	}
	table_close(rel, NoLock);
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(synchro_unpublish);

/* _unpublish(relation oid) void; nothing happens when there is nothing to take out. */
Datum
synchro_unpublish(PG_FUNCTION_ARGS)
{
	Oid			pubid = get_publication_oid(synchro_publication_name, true);
	ObjectAddress address = {PublicationRelRelationId, InvalidOid, 0};

	if (OidIsValid(pubid))
		address.objectId = GetSysCacheOid2(PUBLICATIONRELMAP, Anum_pg_publication_rel_oid, PG_GETARG_DATUM(0),
										   ObjectIdGetDatum(pubid));
	if (OidIsValid(address.objectId))
	{
		performDeletion(&address, DROP_RESTRICT, PERFORM_DELETION_INTERNAL);
		CommandCounterIncrement();
	}
	PG_RETURN_VOID();
}
