CREATE FUNCTION synchro._index_projections(p_generation bigint) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Gives projections an index for each column that a function of the generation compares for equality: that is how impacted rows are
-- found, and what a rule joins. A column that the view casts to a type of the application has none. A value too long for a btree index
-- would stop capture: where its type does not bound it, the index is a hash index, or there is none. An index of the source bounds nothing: it
-- may compress in another way, and it may go. A bound may go too, with a table that is read anew.
-- Locks: SHARE on a projection that gets one, ACCESS EXCLUSIVE where one goes, so the worker waits until commit.
DECLARE
  v_column record;
BEGIN
  FOR v_column IN
    SELECT DISTINCT c.rel_no, c.attnum,
           t.typlen > 0 OR t.oid IN ('inet'::regtype, 'cidr'::regtype) OR (t.oid = 'numeric'::regtype AND s.atttypmod >= 0)
             OR (t.typcategory = 'S' AND s.atttypmod BETWEEN 0 AND 500) AS bounded,
           t.typtype IN ('r', 'm') OR t.oid IN ('text'::regtype, 'varchar'::regtype, 'bpchar'::regtype, 'bytea'::regtype, 'jsonb'::regtype,
                                                'numeric'::regtype) AS hashable,
           (SELECT min(i.indexrelid)::regclass FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_am m ON m.oid = x.relam
             WHERE i.indrelid = p.attrelid AND i.indkey[0] = p.attnum AND NOT i.indisprimary AND m.amname = 'btree') AS btree,
           EXISTS (SELECT FROM pg_index i WHERE i.indrelid = p.attrelid AND i.indkey[0] = p.attnum AND i.indpred IS NULL) AS indexed
      FROM (SELECT r.membership_function AS oid FROM synchro.registration r WHERE r.generation = p_generation AND r.kind = 'synced'
            UNION SELECT d.impact_function FROM synchro.membership_dependency d WHERE d.generation = p_generation) f
      CROSS JOIN LATERAL synchro._joined_columns(f.oid) j
      JOIN pg_class v ON v.oid = j.relation AND v.relnamespace = 'synchro_projection'::regnamespace
      JOIN synchro.relation l ON l.view_name = v.relname
      JOIN pg_attribute a ON a.attrelid = v.oid AND a.attnum = j.attnum
      JOIN synchro.captured_column c ON c.rel_no = l.rel_no AND c.column_name = a.attname
      JOIN pg_type t ON t.oid = c.source_type
      JOIN pg_attribute s ON s.attrelid = l.relation_oid AND s.attnum = c.attnum
      JOIN pg_attribute p ON p.attrelid = format('synchro_data.r_%s', l.rel_no)::regclass AND p.attname = format('c%s', c.attnum)
     WHERE c.storage_type = format('pg_catalog.%I', t.typname)
     ORDER BY c.rel_no, c.attnum
  LOOP
    IF NOT v_column.bounded AND v_column.btree IS NOT NULL THEN
      EXECUTE format('DROP INDEX %s', v_column.btree);
    ELSE
      CONTINUE WHEN v_column.indexed;
    END IF;
    CONTINUE WHEN NOT v_column.bounded AND NOT v_column.hashable;
    EXECUTE format('CREATE INDEX ON synchro_data.r_%s USING %s (c%s)', v_column.rel_no, CASE WHEN v_column.bounded THEN 'btree' ELSE 'hash' END, v_column.attnum);
  END LOOP;
END
$fn$;
