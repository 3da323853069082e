CREATE FUNCTION synchro._emit_marker() RETURNS pg_lsn LANGUAGE c VOLATILE STRICT
AS 'MODULE_PATHNAME', 'synchro_emit_marker';
COMMENT ON FUNCTION synchro._emit_marker() IS
  'Message M, flushed and outside of the transaction. Returns the LSN to wait for with _await_progress.';
