CREATE FUNCTION synchro._expire_clients(p_stale_before timestamptz) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Expires the generation of every client that has acknowledged nothing since p_stale_before; before its first acknowledgement its
-- creation counts. Returns how many. Only then may compaction leave them out of account.
-- Locks: none is waited for, because a push holds its client's row and may wait for the worker; such a client's turn comes later. A
-- row that changed meanwhile is judged by what it is now.
DECLARE
  v_count bigint;
BEGIN
  UPDATE synchro.client c SET expired = true
   WHERE c.client_no IN (SELECT x.client_no FROM synchro.client x
                          WHERE NOT x.expired AND x.retired_at IS NULL AND coalesce(x.last_acknowledged_at, x.created_at) < p_stale_before
                            FOR NO KEY UPDATE SKIP LOCKED);
  GET DIAGNOSTICS v_count = ROW_COUNT;
  RETURN v_count;
END
$fn$;
