CREATE FUNCTION synchro.synchro_retry_capture() RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Lets the worker try the blocked transaction once more, after a repair. Errors: 55000 when capture is not blocked, or when rows may
-- have changed with neither fence nor row event, which nothing could notice any more.
BEGIN
  IF EXISTS (SELECT FROM synchro.quarantine q WHERE q.resolved_at IS NULL AND NOT q.retryable) THEN
    RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = 'rows of a registered table may have changed without a trace',
      HINT = 'repair its triggers and the publication, and register the table again: that reads all its rows anew';
  END IF;
  IF EXISTS (SELECT FROM synchro.quarantine q JOIN synchro.capture_recovery c USING (quarantine_no) WHERE q.resolved_at IS NULL) THEN
    RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = 'capture is recovering already',
      HINT = 'it opens by itself once the worker has reached the registration that was made for it';
  END IF;
  UPDATE synchro.quarantine SET resolved_at = now(), resolution = 'retried' WHERE resolved_at IS NULL;
  IF NOT FOUND THEN
    RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = 'capture is not blocked';
  END IF;
  -- A block of another relation came in between: the recovery that it interrupted keeps clients waiting.
  WITH again AS (
    INSERT INTO synchro.quarantine (stream_generation, commit_lsn, event_ordinal, class, rel_no, retryable, attempts)
    SELECT q.stream_generation, q.commit_lsn, q.event_ordinal, q.class, q.rel_no, q.retryable, q.attempts
      FROM synchro.quarantine q WHERE q.quarantine_no = (SELECT max(c.quarantine_no) FROM synchro.capture_recovery c)
    RETURNING quarantine_no
  )
  UPDATE synchro.capture_recovery c SET quarantine_no = again.quarantine_no FROM again
   WHERE c.quarantine_no = (SELECT max(x.quarantine_no) FROM synchro.capture_recovery x);
  PERFORM synchro._worker_wake();
END
$fn$;
