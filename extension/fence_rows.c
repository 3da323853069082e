/*
 * fence_rows.c
 *		Rows that a fence leaves in tables of the extension, written with the rights of their owner.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "utils/array.h"
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
fence_write_push_rows(const PushedFence *fences, int n)
{
	static SPIPlanPtr plan = NULL;
	Oid			types[] = {INT4ARRAYOID, TEXTARRAYOID, XIDARRAYOID, TEXTARRAYOID, CHARARRAYOID, INT8ARRAYOID};
	Datum	   *columns[lengthof(types)];
	Datum		values[lengthof(types)];

	for (int i = 0; i < lengthof(types); i++)
		columns[i] = palloc(sizeof(Datum) * n);
	for (int i = 0; i < n; i++)
	{
		columns[0][i] = Int32GetDatum(fences[i].rel_no);
		columns[1][i] = CStringGetTextDatum(fences[i].key);
		columns[2][i] = TransactionIdGetDatum(fences[i].xmin);
		columns[3][i] = CStringGetTextDatum(fences[i].version);
		columns[4][i] = CharGetDatum(fences[i].op);
		columns[5][i] = Int64GetDatum((int64) fences[i].ordinal);
	}
	values[0] = PointerGetDatum(construct_array(columns[0], n, INT4OID, sizeof(int32), true, TYPALIGN_INT));
	values[1] = PointerGetDatum(construct_array(columns[1], n, TEXTOID, -1, false, TYPALIGN_INT));
	values[2] = PointerGetDatum(construct_array(columns[2], n, XIDOID, sizeof(TransactionId), true, TYPALIGN_INT));
	values[3] = PointerGetDatum(construct_array(columns[3], n, TEXTOID, -1, false, TYPALIGN_INT));
	values[4] = PointerGetDatum(construct_array(columns[4], n, CHAROID, sizeof(char), true, TYPALIGN_CHAR));
	values[5] = PointerGetDatum(construct_array(columns[5], n, INT8OID, sizeof(int64), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
	run(&plan,
		"INSERT INTO synchro.push_fence (rel_no, key, row_xmin, server_version, op, ordinal)"
		" SELECT * FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2), pg_catalog.unnest($3), pg_catalog.unnest($4),"
		" pg_catalog.unnest($5), pg_catalog.unnest($6))",
		lengthof(types), types, values);
}
