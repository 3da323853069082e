CREATE FUNCTION synchro.synchro_unregister_membership_dependency(p_dependency_table_name text, p_target_table_name text)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Removes the declaration that the target's membership depends on the relation.
-- Errors: 55000 when it is not declared; refusals of the names. At commit undeclared_dependency while a function of the target reads it.
DECLARE
  v_target     int;
  v_source     int;
  v_generation bigint;
BEGIN
  PERFORM synchro._registration_lock();
  v_target := synchro._registered_relation(p_target_table_name);
  v_source := synchro._registered_relation(p_dependency_table_name);
  IF NOT EXISTS (SELECT FROM synchro.membership_dependency d WHERE d.target_rel_no = v_target AND d.source_rel_no = v_source
                    AND d.generation = synchro._newest_generation()) THEN
    RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = 'the dependency is not registered',
      HINT = 'the dependency''s table comes first, the target second';
  END IF;
  v_generation := synchro._open_generation();
  DELETE FROM synchro.membership_dependency WHERE generation = v_generation AND target_rel_no = v_target AND source_rel_no = v_source;
END
$fn$;
