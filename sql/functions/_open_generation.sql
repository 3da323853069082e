CREATE FUNCTION synchro._open_generation() RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- The generation that this transaction builds: begun at the first change with a copy of the newest one's registrations.
-- The caller holds _registration_lock().
DECLARE
  v_last bigint;
  v_mine bigint;
BEGIN
  SELECT max(g.generation), max(g.generation) FILTER (WHERE g.xid = pg_current_xact_id()) INTO v_last, v_mine
    FROM synchro.registry_generation g;
  IF v_mine IS NOT NULL THEN
    RETURN v_mine;
  END IF;
  INSERT INTO synchro.registry_generation (generation, actor) VALUES (v_last + 1, session_user);
  INSERT INTO synchro.registration
  SELECT (jsonb_populate_record(r, jsonb_build_object('generation', v_last + 1))).*
    FROM synchro.registration r WHERE r.generation = v_last;
  RETURN v_last + 1;
END
$fn$;
