CREATE FUNCTION synchro._open_generation() RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- The generation that this transaction builds: begun at the first change with a copy of the newest one's registrations and dependencies, a rejected one
-- left aside.
-- The caller holds _registration_lock(). Errors: 55000 when the generation is complete, because constraints were made immediate.
DECLARE
  v_last     bigint;
  v_base     bigint := synchro._newest_generation();
  v_mine     bigint;
  v_complete boolean;
BEGIN
  SELECT max(g.generation), max(g.generation) FILTER (WHERE g.xid = pg_current_xact_id()),
         bool_or(g.schema_version IS NOT NULL) FILTER (WHERE g.xid = pg_current_xact_id())
    INTO v_last, v_mine, v_complete FROM synchro.registry_generation g;
  IF v_complete THEN
    RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = 'the registration of this transaction is complete',
      HINT = 'register everything before SET CONSTRAINTS ALL IMMEDIATE, or in another transaction';
  ELSIF v_mine IS NOT NULL THEN
    RETURN v_mine;
  END IF;
  SET CONSTRAINTS synchro.complete_generation DEFERRED; -- whatever the transaction has said of all
  INSERT INTO synchro.registry_generation (generation, base, actor) VALUES (synchro._next(v_last), v_base, session_user);
  INSERT INTO synchro.registration
  SELECT (jsonb_populate_record(r, jsonb_build_object('generation', v_last + 1, 'amends', false))).*
    FROM synchro.registration r WHERE r.generation = v_base;
  INSERT INTO synchro.membership_dependency
  SELECT (jsonb_populate_record(d, jsonb_build_object('generation', v_last + 1))).*
    FROM synchro.membership_dependency d WHERE d.generation = v_base;
  RETURN v_last + 1;
END
$fn$;
