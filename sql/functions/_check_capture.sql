CREATE FUNCTION synchro._check_capture(p_progress synchro.progress, p_client synchro.client) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- May new state be served to this client from this progress row?
-- Errors: SY012 when the stream was not reset after a restore or promotion, or while capture is blocked; SY013 while an accepted
-- push of the client is not materialized, so that it reads its own writes.
BEGIN
  PERFORM synchro._check_stream(p_progress);
  IF EXISTS (SELECT FROM synchro.quarantine q WHERE q.resolved_at IS NULL) THEN
    PERFORM synchro._raise('temporary_unavailable', '{"reason":"capture_blocked"}');
  ELSIF p_client.accepted_write_epoch > coalesce((SELECT m.write_epoch FROM synchro.client_materialized m
                                                   WHERE m.client_no = p_client.client_no), 0) THEN
    PERFORM synchro._raise('capture_pending');
  END IF;
END
$fn$;
