/*
 * fence_rows.c
 *		Rows that a fence leaves in tables of the extension, written with the rights of their owner.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "utils/builtins.h"

#include "actas.h"
#include "fence.h"

/* Runs a statement of ours; the plan is kept for the session. */
static void
run(SPIPlanPtr *plan, const char *statement, int nargs, Oid *types, Datum *values)
{
	SynActor	writer;

	syn_act_as(&writer, syn_owner());
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	if (*plan == NULL)
	{
		SPIPlanPtr	prepared = SPI_prepare(statement, nargs, types);

		if (prepared == NULL || SPI_keepplan(prepared) != 0)
			elog(ERROR, "could not prepare: %s", SPI_result_code_string(SPI_result));
		*plan = prepared;
	}
	if (SPI_execute_plan(*plan, values, NULL, false, 0) != SPI_OK_INSERT)
		elog(ERROR, "could not execute: %s", SPI_result_code_string(SPI_result));
	if (SPI_finish() != SPI_OK_FINISH)
		elog(ERROR, "SPI_finish failed");
	syn_act_back(&writer);
}

void
fence_write_tombstone(int rel_no, const char *key, const char *version)
{
	static SPIPlanPtr plan = NULL;
	Oid			types[] = {INT4OID, TEXTOID, TEXTOID};
	Datum		values[] = {Int32GetDatum(rel_no), CStringGetTextDatum(key), CStringGetTextDatum(version)};

	run(&plan,
		"INSERT INTO synchro.tombstone (rel_no, key, server_version) VALUES ($1, $2, $3) "
		"ON CONFLICT (rel_no, key) DO UPDATE SET server_version = EXCLUDED.server_version, "
		"deleted_at = EXCLUDED.deleted_at",
		lengthof(types), types, values);
}

void
fence_write_push_row(int rel_no, const char *key, TransactionId xmin, const char *version, char op, uint64 ordinal)
{
	static SPIPlanPtr plan = NULL;
	Oid			types[] = {INT4OID, TEXTOID, XIDOID, TEXTOID, CHAROID, INT8OID};
	Datum		values[] = {
		Int32GetDatum(rel_no), CStringGetTextDatum(key), TransactionIdGetDatum(xmin), CStringGetTextDatum(version),
		CharGetDatum(op), Int64GetDatum((int64) ordinal)
	};

	run(&plan,
		"INSERT INTO synchro.push_fence (rel_no, key, row_xmin, server_version, op, ordinal) VALUES ($1, $2, $3, $4, $5, $6)",
		lengthof(types), types, values);
}
