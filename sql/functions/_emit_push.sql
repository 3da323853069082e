CREATE FUNCTION synchro._emit_push(p_client_no bigint, p_write_epoch bigint) RETURNS void LANGUAGE c VOLATILE STRICT
AS 'MODULE_PATHNAME', 'synchro_emit_push';
COMMENT ON FUNCTION synchro._emit_push(bigint, bigint) IS
  'Message P: this transaction is the accepted push of the client with that write epoch.';
