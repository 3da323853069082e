CREATE FUNCTION synchro._capture_columns(p_relation oid, p_columns name[]) RETURNS int LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Introduces the relation and the named columns: issues their ids once and gives the projection table a column for each.
-- Returns rel_no. Errors: unsupported_type; 0A000 for a captured column that was renamed or retyped, and for a relation that has another name
-- than what is in use knows it by; 55P03. Locks: the projection table, if a column is added.
DECLARE
  v_rel_no int;
  v_old    record;
  v_col    record;
BEGIN
  -- From PostgreSQL 18 on there are generated columns that are computed at each read.
  SELECT a.attname INTO v_col FROM pg_attribute a
   WHERE a.attrelid = p_relation AND a.attgenerated NOT IN ('', 's') AND a.attname = ANY (p_columns) LIMIT 1;
  IF FOUND THEN
    PERFORM synchro._refuse('unsupported_type', format('column %I is generated and not stored', v_col.attname),
                            'exclude the column, or make it STORED');
  END IF;
  SELECT a.attname INTO v_col FROM pg_attribute a
   WHERE a.attrelid = p_relation AND a.attname = ANY (p_columns) AND synchro._storage_type(a.atttypid) ~ '^pg_catalog[.]_?(money|aclitem|reg[a-z]+)$' LIMIT 1;
  IF FOUND THEN
    PERFORM synchro._refuse('unsupported_type', format('the text of column %I depends on settings or the catalog', v_col.attname),
                            'leave the column out, or keep its value in a column of another type');
  END IF;
  PERFORM synchro._renew_relation(p_relation);
  SELECT l.rel_no INTO v_rel_no FROM synchro.relation l WHERE l.relation_oid = p_relation;
  -- The worker, its stream and the fences in it know a relation by one name as long as anything of it is in use.
  SELECT l.physical_schema, l.physical_relation, n.nspname, c.relname INTO v_old
    FROM synchro.relation l JOIN pg_class c ON c.oid = l.relation_oid JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE l.rel_no = v_rel_no AND (l.physical_schema, l.physical_relation) <> (n.nspname, c.relname);
  IF FOUND AND synchro._is_held(v_rel_no) THEN
    RAISE EXCEPTION USING ERRCODE = '0A000', MESSAGE = format('the relation was registered as %I.%I', v_old.physical_schema, v_old.physical_relation),
      HINT = 'unregister it, and register it under its new name once that is active; or give it the name that it had';
  ELSIF FOUND THEN
    UPDATE synchro.relation SET physical_schema = v_old.nspname, physical_relation = v_old.relname WHERE rel_no = v_rel_no;
  END IF;
  IF v_rel_no IS NULL THEN
    INSERT INTO synchro.relation (physical_schema, physical_relation, relation_oid)
    SELECT n.nspname, c.relname, c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE c.oid = p_relation
    RETURNING rel_no INTO v_rel_no;
    -- Half-filled pages: a new row is updated once its scopes are known, in its place and without touching the index.
    EXECUTE format('CREATE TABLE synchro_data.r_%s (server_version text COLLATE "C" NOT NULL, row_xmin xid NOT NULL, '
                   'scopes bigint[] NOT NULL DEFAULT ''{}'') WITH (fillfactor = 50)', v_rel_no);
    EXECUTE format('REVOKE ALL ON synchro_data.r_%s FROM PUBLIC', v_rel_no);
    EXECUTE format('REVOKE ALL ON TYPE synchro_data.r_%s FROM PUBLIC', v_rel_no);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON synchro_data.r_%s TO synchro_worker', v_rel_no);
  END IF;
  -- What was captured once keeps its meaning: views and manifests refer to it.
  SELECT a.attname INTO v_col FROM pg_attribute a JOIN synchro.captured_column c
      ON c.rel_no = v_rel_no AND (c.attnum = a.attnum OR c.column_name = a.attname)
   WHERE a.attrelid = p_relation AND a.attnum > 0 AND NOT a.attisdropped AND a.attname = ANY (p_columns)
     AND (c.attnum, c.column_name, c.source_type, c.generated) IS DISTINCT FROM (a.attnum, a.attname, a.atttypid, a.attgenerated = 's') LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION USING ERRCODE = '0A000', MESSAGE = format('column %I was captured before under another name, type or place', v_col.attname),
      HINT = 'unregister the table, and register it once that is active: it becomes another table for clients. Or use a new column with a name of its own';
  END IF;
  INSERT INTO synchro.captured_column (rel_no, attnum, column_name, source_type, storage_type, generated)
  SELECT v_rel_no, a.attnum, a.attname, a.atttypid, synchro._storage_type(a.atttypid), a.attgenerated = 's'
    FROM pg_attribute a
   WHERE a.attrelid = p_relation AND a.attnum > 0 AND NOT a.attisdropped AND a.attname = ANY (p_columns)
     AND NOT EXISTS (SELECT FROM synchro.captured_column c WHERE c.rel_no = v_rel_no AND c.attnum = a.attnum)
   ORDER BY a.attnum;
  -- A projection that the worker holds is locked as late as can be: when the generation is complete.
  IF NOT synchro._is_held(v_rel_no) THEN
    PERFORM synchro._widen_projection(v_rel_no, format('r_%s', v_rel_no)::name);
  END IF;
  RETURN v_rel_no;
END
$fn$;
