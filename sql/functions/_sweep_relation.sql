CREATE FUNCTION synchro._sweep_relation(p_relation oid) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- For the worker: takes triggers and publication off a relation that is not registered any more. It may have come back meanwhile.
-- Locks: ACCESS EXCLUSIVE on the relation and its partitions.
BEGIN
  PERFORM synchro._remove_triggers(p_relation);
  IF NOT EXISTS (SELECT FROM synchro.standing_registration r WHERE r.relation_oid = p_relation) THEN
    PERFORM synchro._unpublish(p_relation);
  END IF;
END
$fn$;
