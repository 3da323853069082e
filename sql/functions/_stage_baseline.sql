CREATE FUNCTION synchro._stage_baseline(p_registration synchro.registration) RETURNS uuid[] LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Baselines a relation whose projection the worker still holds, into a table of its own, synchro_data.s_<rel_no>_<generation>: the
-- projection serves the old generation until the worker, at this commit's place in the stream, takes from there what it lacks. When an amended
-- registration needs nothing of it, the table goes again and the projection stays as it is.
-- Returns the ids of tables and fields that are new to clients and hold rows or values. Errors: unrepresentable_value; 55P03.
DECLARE
  v_stage  name := format('s_%s_%s', p_registration.rel_no, p_registration.generation);
  v_old    synchro.registration;
  v_col    record;
  v_rows   bigint;
  v_filled boolean;
  v_stale  boolean;
  v_anew   boolean;
  v_fields uuid[] := '{}';
BEGIN
  SELECT r.* INTO v_old FROM synchro.registration r
   WHERE r.rel_no = p_registration.rel_no
     AND r.generation = (SELECT g.base FROM synchro.registry_generation g WHERE g.generation = p_registration.generation);
  -- A column that is not null from now on: clients that may still hold a NULL have to copy its rows again.
  v_anew := NOT p_registration.amends
    OR EXISTS (SELECT FROM unnest(p_registration.required_columns) c WHERE c = ANY (v_old.sync_columns) AND c <> ALL (v_old.required_columns));
  EXECUTE format('CREATE TABLE synchro_data.%I (LIKE synchro_data.r_%s INCLUDING DEFAULTS)', v_stage, p_registration.rel_no);
  EXECUTE format('REVOKE ALL ON synchro_data.%I FROM PUBLIC', v_stage);
  EXECUTE format('REVOKE ALL ON TYPE synchro_data.%I FROM PUBLIC', v_stage);
  EXECUTE format('GRANT SELECT ON synchro_data.%I TO synchro_worker', v_stage);
  PERFORM synchro._widen_projection(p_registration.rel_no, v_stage);
  v_rows := synchro._baseline(p_registration.rel_no, p_registration.generation, v_stage);
  PERFORM synchro._check_representable(p_registration.rel_no, p_registration.generation, v_stage);
  IF v_rows > 0 AND p_registration.kind = 'synced' AND v_old.kind IS DISTINCT FROM 'synced' THEN
    v_fields := v_fields || (SELECT l.table_id FROM synchro.relation l WHERE l.rel_no = p_registration.rel_no);
  END IF;
  FOR v_col IN -- what the projection cannot be relied on to have: it may lack the column, or have it from a time when it was captured before
    SELECT c.attnum, c.field_id, c.column_name = ANY (p_registration.sync_columns) AND (c.column_name = ANY (v_old.sync_columns)) IS NOT TRUE AS new_field,
           EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = format('synchro_data.r_%s', p_registration.rel_no)::regclass
                      AND a.attname = 'c' || c.attnum AND NOT a.attisdropped) AS had
      FROM synchro.captured_column c JOIN synchro.relation l ON l.rel_no = c.rel_no
     WHERE c.rel_no = p_registration.rel_no
       AND c.column_name = ANY (synchro._needed_columns(p_registration, l.view_columns))
       AND (v_old.rel_no IS NULL OR c.column_name <> ALL (synchro._needed_columns(v_old, l.view_columns)))
  LOOP
    EXECUTE format('SELECT EXISTS (SELECT FROM synchro_data.%I WHERE c%s IS NOT NULL)', v_stage, v_col.attnum) INTO v_filled;
    v_stale := false;
    IF v_col.had THEN
      EXECUTE format('SELECT EXISTS (SELECT FROM synchro_data.r_%s WHERE c%s IS NOT NULL)', p_registration.rel_no, v_col.attnum) INTO v_stale;
    END IF;
    v_anew := v_anew OR v_filled OR v_stale;
    IF v_filled AND v_col.new_field THEN
      v_fields := v_fields || v_col.field_id;
    END IF;
  END LOOP;
  IF NOT v_anew THEN
    EXECUTE format('DROP TABLE synchro_data.%I', v_stage);
    UPDATE synchro.registration SET since = v_old.since WHERE generation = p_registration.generation AND rel_no = p_registration.rel_no;
  END IF;
  PERFORM synchro._widen_projection(p_registration.rel_no, format('r_%s', p_registration.rel_no)::name); -- last: nobody reads it until commit
  RETURN v_fields;
END
$fn$;
