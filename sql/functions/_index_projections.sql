CREATE FUNCTION synchro._index_projections(p_generation bigint) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Gives projections an index for each column that a function of the generation compares for equality: that is how impacted rows are
-- found, and what a rule joins. A column that the view casts to a type of the application has none. Locks: SHARE on a
-- projection that gets one, so the worker waits until commit.
DECLARE
  v_column record;
BEGIN
  FOR v_column IN
    SELECT DISTINCT c.rel_no, c.attnum
      FROM (SELECT r.membership_function AS oid FROM synchro.registration r WHERE r.generation = p_generation AND r.kind = 'synced'
            UNION SELECT d.impact_function FROM synchro.membership_dependency d WHERE d.generation = p_generation) f
      CROSS JOIN LATERAL synchro._joined_columns(f.oid) j
      JOIN pg_class v ON v.oid = j.relation AND v.relnamespace = 'synchro_projection'::regnamespace
      JOIN synchro.relation l ON l.view_name = v.relname
      JOIN pg_attribute a ON a.attrelid = v.oid AND a.attnum = j.attnum
      JOIN synchro.captured_column c ON c.rel_no = l.rel_no AND c.column_name = a.attname
      JOIN pg_type t ON t.oid = c.source_type
      JOIN pg_attribute p ON p.attrelid = format('synchro_data.r_%s', l.rel_no)::regclass AND p.attname = format('c%s', c.attnum)
     WHERE c.storage_type = format('pg_catalog.%I', t.typname)
       AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = p.attrelid AND i.indkey[0] = p.attnum AND i.indpred IS NULL)
     ORDER BY c.rel_no, c.attnum
  LOOP
    EXECUTE format('CREATE INDEX ON synchro_data.r_%s (c%s)', v_column.rel_no, v_column.attnum);
  END LOOP;
END
$fn$;
