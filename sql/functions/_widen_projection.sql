CREATE FUNCTION synchro._widen_projection(p_rel_no int, p_table name) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp SET lock_timeout = '1s' AS $fn$
-- Gives a table of synchro_data a column for each captured column of the relation that it does not have yet.
-- Errors: 55P03 when the table is in use. Locks: ACCESS EXCLUSIVE on it, if a column is added.
DECLARE
  v_col record;
BEGIN
  FOR v_col IN
    SELECT c.attnum, c.storage_type,
           CASE WHEN c.storage_type = 'text' AND c.source_type <> 'text'::regtype THEN ''
                WHEN a.attcollation NOT IN (0, 100, (SELECT t.typcollation FROM pg_type t WHERE t.oid = a.atttypid))
                THEN (SELECT format(' COLLATE %I.%I', n.nspname, k.collname) FROM pg_collation k
                        JOIN pg_namespace n ON n.oid = k.collnamespace WHERE k.oid = a.attcollation)
                ELSE '' END AS collation
      FROM synchro.captured_column c JOIN synchro.relation l ON l.rel_no = c.rel_no
      LEFT JOIN pg_attribute a ON a.attrelid = l.relation_oid AND a.attnum = c.attnum
     WHERE c.rel_no = p_rel_no
       AND NOT EXISTS (SELECT FROM pg_attribute x WHERE x.attrelid = format('synchro_data.%I', p_table)::regclass
                          AND x.attname = 'c' || c.attnum AND NOT x.attisdropped)
     ORDER BY c.attnum
  LOOP
    EXECUTE format('ALTER TABLE synchro_data.%I ADD COLUMN c%s %s%s', p_table, v_col.attnum, v_col.storage_type, coalesce(v_col.collation, ''));
  END LOOP;
EXCEPTION WHEN lock_not_available THEN
  RAISE EXCEPTION USING ERRCODE = '55P03', MESSAGE = 'the projection of the relation is in use', HINT = 'try again';
END
$fn$;
