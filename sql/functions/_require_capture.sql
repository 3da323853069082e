CREATE FUNCTION synchro._require_capture(p_since timestamptz) RETURNS boolean LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- For calls that wait for the worker, to be called again and again: does it stream? p_since: when it was last known to, at first the time
-- of the call. Errors: 55000 when capture is blocked, or nobody has streamed for five seconds.
BEGIN
  IF EXISTS (SELECT FROM synchro.quarantine q WHERE q.resolved_at IS NULL) THEN
    RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = 'capture is blocked', HINT = 'See synchro.synchro_health_detail().';
  ELSIF EXISTS (SELECT FROM synchro.progress p JOIN pg_replication_slots s ON s.slot_name = p.slot_name WHERE s.active) THEN
    RETURN true;
  ELSIF p_since < clock_timestamp() - interval '5 seconds' THEN
    RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = 'the capture worker does not run', HINT = 'See synchro.synchro_health_detail().';
  END IF;
  RETURN false;
END
$fn$;
