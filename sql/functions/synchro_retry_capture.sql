CREATE FUNCTION synchro.synchro_retry_capture() RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Lets the worker try the blocked transaction once more, after a repair. Errors: 55000 when capture is not blocked, or when rows may
-- have changed with neither fence nor row event, which nothing could notice any more.
BEGIN
  IF EXISTS (SELECT FROM synchro.quarantine q WHERE q.resolved_at IS NULL AND NOT q.retryable) THEN
    RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = 'rows of a registered table may have changed without a trace',
      HINT = 'repair its triggers and the publication, and register the table again: that reads all its rows anew';
  END IF;
  UPDATE synchro.quarantine SET resolved_at = now(), resolution = 'retried' WHERE resolved_at IS NULL;
  IF NOT FOUND THEN
    RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = 'capture is not blocked';
  END IF;
  PERFORM synchro._worker_wake();
END
$fn$;
