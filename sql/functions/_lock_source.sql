CREATE FUNCTION synchro._lock_source(p_relation oid) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp SET lock_timeout = '1s' AS $fn$
-- Stops writers of the relation until the transaction ends. It waits for those at work, one second at most: others queue behind it.
-- Errors: 55P03. Locks: SHARE ROW EXCLUSIVE on the relation and its partitions.
BEGIN
  PERFORM synchro._lock_relation(p_relation);
EXCEPTION WHEN lock_not_available THEN
  RAISE EXCEPTION USING ERRCODE = '55P03', MESSAGE = format('table %s is being written by a long transaction', p_relation::regclass),
    HINT = 'try again: registration waits one second at most, because writers queue behind it';
END
$fn$;
