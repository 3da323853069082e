CREATE FUNCTION synchro._unregister_relation(p_name text, p_kind text) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- A generation without the relation, and without what its own membership depended on. Ids stay, and so do its triggers until the worker
-- has activated the generation. Errors: 55000 when it is not registered as p_kind; refusals of the name.
DECLARE
  v_rel_no     int;
  v_kind       text;
  v_generation bigint;
BEGIN
  PERFORM synchro._registration_lock();
  v_rel_no := synchro._registered_relation(p_name);
  SELECT r.kind INTO v_kind FROM synchro.registration r
   WHERE r.rel_no = v_rel_no AND r.generation = synchro._newest_generation();
  IF v_kind <> p_kind THEN
    RAISE EXCEPTION USING ERRCODE = '55000',
      MESSAGE = CASE v_kind WHEN 'synced' THEN 'the table is synced, not a capture dependency'
                            ELSE 'the table is a capture dependency, not synced' END,
      HINT = CASE v_kind WHEN 'synced' THEN 'synchro_unregister_table ends it' ELSE 'synchro_unregister_capture_dependency ends it' END;
  END IF;
  v_generation := synchro._open_generation();
  DELETE FROM synchro.registration WHERE generation = v_generation AND rel_no = v_rel_no;
  DELETE FROM synchro.membership_dependency WHERE generation = v_generation AND target_rel_no = v_rel_no;
END
$fn$;
