CREATE FUNCTION synchro._check_stream(p_progress synchro.progress) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Does the progress row belong to this stream of WAL? Errors: SY012 after a restore or promotion without a reset of the stream.
BEGIN
  IF (p_progress.system_identifier, p_progress.timeline, p_progress.database_oid)
     IS DISTINCT FROM (SELECT (i.system_identifier, i.timeline, i.database_oid) FROM synchro._stream_identity() i) THEN
    PERFORM synchro._raise('temporary_unavailable');
  END IF;
END
$fn$;
