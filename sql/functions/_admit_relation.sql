CREATE FUNCTION synchro._admit_relation(p_relation oid, p_registration synchro.registration) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Puts a relation that is not in the generation of this transaction into it: its ids, projection, publication and triggers.
-- p_registration: the row to insert, without generation, rel_no and since. The caller holds _registration_lock().
-- Errors: 55000 while its unregistration is not active; 55P03 while it is being written. Locks: SHARE ROW EXCLUSIVE on the relation until commit (writers wait).
DECLARE
  v_reg     synchro.registration := p_registration;
  v_synced  boolean := p_registration.kind = 'synced';
  v_base    bigint := (SELECT g.base FROM synchro.registry_generation g WHERE g.generation = synchro._open_generation());
  v_columns name[] := coalesce(p_registration.captured_columns, p_registration.sync_columns);
BEGIN
  -- A relation that a committed unregistration has left, but the worker has not yet.
  IF EXISTS (SELECT FROM synchro.relation l WHERE l.relation_oid = p_relation AND synchro._is_held(l.rel_no)
               AND NOT EXISTS (SELECT FROM synchro.registration r WHERE r.rel_no = l.rel_no AND r.generation = v_base)) THEN
    RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = 'the table''s unregistration is not active yet',
      HINT = 'register it again once the worker has activated the unregistration';
  END IF;
  PERFORM synchro._lock_source(p_relation);
  v_reg.rel_no := synchro._capture_columns(p_relation, v_columns);
  PERFORM synchro._set_projection_key(v_reg.rel_no, v_reg.key_attnum);
  IF v_synced THEN
    PERFORM synchro._issue_table_id(v_reg.rel_no);
    PERFORM synchro._introduce_indexes(v_reg.rel_no, p_relation, v_columns);
  END IF;
  v_reg.generation := synchro._open_generation();
  v_reg.since := v_reg.generation;
  v_reg.amends := coalesce(v_reg.amends, false);
  INSERT INTO synchro.registration SELECT v_reg.*;
  PERFORM synchro._publish(p_relation);
  -- Values of a capture dependency reach no client: they need no portable form.
  PERFORM synchro._install_triggers(v_reg.rel_no, p_relation, l.relation_id, CASE WHEN v_synced THEN l.table_id END,
            CASE WHEN v_synced THEN 's' ELSE 'd' END::"char", v_reg.key_attnum,
            (SELECT coalesce(array_agg(c.attnum ORDER BY c.attnum), '{}') FROM synchro.captured_column c
              WHERE c.rel_no = v_reg.rel_no AND c.column_name = ANY (v_reg.sync_columns)),
            (SELECT coalesce(array_agg(c.attnum ORDER BY c.attnum), '{}') FROM synchro.captured_column c
              WHERE c.rel_no = v_reg.rel_no AND c.column_name = ANY (v_reg.text_columns)),
            (SELECT coalesce(array_agg(c.attnum ORDER BY c.attnum), '{}') FROM synchro.captured_column c
              WHERE c.rel_no = v_reg.rel_no AND c.column_name = ANY (v_reg.required_columns)))
     FROM synchro.relation l WHERE l.rel_no = v_reg.rel_no;
END
$fn$;
