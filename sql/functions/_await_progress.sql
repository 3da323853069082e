CREATE FUNCTION synchro._await_progress(p_lsn pg_lsn, p_timeout_ms int) RETURNS boolean LANGUAGE c VOLATILE STRICT
AS 'MODULE_PATHNAME', 'synchro_await_progress';
COMMENT ON FUNCTION synchro._await_progress(pg_lsn, int) IS
  'Waits until everything below the LSN is materialized, whatever snapshot the transaction has; false when the time was over first.';
