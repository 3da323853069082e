CREATE FUNCTION synchro._may_read(p_relation oid) RETURNS boolean LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Gate of a projection view: true when the reading role may read the source relation, else an error (42501).
BEGIN
  IF has_table_privilege(p_relation, 'SELECT') THEN
    RETURN true;
  END IF;
  RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = 'a projection view needs SELECT on its source relation';
END
$fn$;
