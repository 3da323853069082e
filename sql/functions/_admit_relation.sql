CREATE FUNCTION synchro._admit_relation(p_relation oid, p_registration synchro.registration) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Puts a relation that is not in the generation of this transaction into it: its ids, projection, publication and triggers.
-- p_registration: the row to insert, without generation, rel_no and since. The caller holds _registration_lock().
-- Errors: 55000 for a table whose unregistration is committed and not active; 55P03 while it is being written.
-- Locks: SHARE ROW EXCLUSIVE on the relation until commit (writers wait).
DECLARE
  v_reg     synchro.registration := p_registration;
  v_synced  boolean := p_registration.kind = 'synced';
  v_columns name[] := coalesce(p_registration.captured_columns, p_registration.sync_columns);
BEGIN
  IF EXISTS (SELECT FROM synchro.relation l JOIN synchro.standing_registration r ON r.rel_no = l.rel_no AND r.kind = 'synced'
              WHERE l.relation_oid = p_relation
                AND NOT EXISTS (SELECT FROM synchro.registry_generation g JOIN synchro.registration b ON b.generation = g.base
                                 WHERE g.generation = synchro._open_generation() AND b.rel_no = l.rel_no)) THEN
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
  PERFORM synchro._install_fence(v_reg.rel_no);
END
$fn$;
