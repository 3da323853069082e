CREATE FUNCTION synchro.synchro_unregister_table(p_table_name text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Takes a table out of sync: a generation without it, an incompatible (Class 4) manifest step for its clients.
-- Its triggers stay, and cost their writers, until the worker has activated the generation. Its ids are kept.
-- A registered table that was dropped is found by the name that it had.
-- Errors: 55000 when the table is not registered; refusals of the name.
DECLARE
  v_rel_no     int;
  v_generation bigint;
BEGIN
  PERFORM synchro._registration_lock();
  SELECT r.rel_no INTO v_rel_no FROM synchro.registration r JOIN synchro.relation l ON l.rel_no = r.rel_no
   WHERE p_table_name IN (format('%I.%I', l.physical_schema, l.physical_relation), l.physical_schema || '.' || l.physical_relation)
     AND NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = l.relation_oid)
     AND r.generation = (SELECT max(g.generation) FROM synchro.registry_generation g);
  IF v_rel_no IS NULL THEN
    SELECT r.rel_no INTO v_rel_no FROM synchro.registration r JOIN synchro.relation l ON l.rel_no = r.rel_no
     WHERE l.relation_oid = synchro._resolve_relation(p_table_name)
       AND r.generation = (SELECT max(g.generation) FROM synchro.registry_generation g);
  END IF;
  IF v_rel_no IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = 'the table is not registered';
  END IF;
  v_generation := synchro._open_generation();
  DELETE FROM synchro.registration WHERE generation = v_generation AND rel_no = v_rel_no;
END
$fn$;
