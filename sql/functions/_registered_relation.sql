CREATE FUNCTION synchro._registered_relation(p_name text) RETURNS int LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- rel_no of a relation that the newest generation names. One that was dropped is found by the name that it had.
-- Errors: 55000 when there is none; refusals of the name.
DECLARE
  v_generation bigint := synchro._newest_generation();
  v_rel_no     int;
BEGIN
  SELECT l.rel_no INTO v_rel_no FROM synchro.registration r JOIN synchro.relation l ON l.rel_no = r.rel_no
   WHERE p_name IN (format('%I.%I', l.physical_schema, l.physical_relation), l.physical_schema || '.' || l.physical_relation)
     AND NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = l.relation_oid) AND r.generation = v_generation;
  IF v_rel_no IS NULL THEN
    SELECT l.rel_no INTO v_rel_no FROM synchro.registration r JOIN synchro.relation l ON l.rel_no = r.rel_no
     WHERE l.relation_oid = synchro._resolve_relation(p_name) AND r.generation = v_generation;
  END IF;
  IF v_rel_no IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = 'the table is not registered',
      HINT = 'the newest registry generation does not contain it: perhaps it was unregistered before';
  END IF;
  RETURN v_rel_no;
END
$fn$;
