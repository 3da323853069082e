CREATE FUNCTION synchro._check_capture(p_progress synchro.progress, p_client synchro.client) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- May state be served from this progress row to this client? p_client NULL: to any, that is without the last rule.
-- Errors: SY012 when the stream was not reset after a restore or promotion, or while capture is blocked; SY013 while an accepted
-- push of the client is not materialized, so that it reads its own writes.
DECLARE
  v_state record;
BEGIN
  SELECT (p_progress.system_identifier, p_progress.timeline, p_progress.database_oid)
           IS DISTINCT FROM (i.system_identifier, i.timeline, i.database_oid) AS foreign_stream,
         EXISTS (SELECT FROM synchro.quarantine q WHERE q.resolved_at IS NULL) AS blocked,
         p_client.accepted_write_epoch > coalesce((SELECT m.write_epoch FROM synchro.client_materialized m
                                                    WHERE m.client_no = p_client.client_no), 0) AS pending
    INTO v_state FROM synchro._stream_identity() i;
  IF v_state.foreign_stream THEN
    PERFORM synchro._raise('temporary_unavailable');
  ELSIF v_state.blocked THEN
    PERFORM synchro._raise('temporary_unavailable', '{"reason":"capture_blocked"}');
  ELSIF v_state.pending THEN
    PERFORM synchro._raise('capture_pending');
  END IF;
END
$fn$;
