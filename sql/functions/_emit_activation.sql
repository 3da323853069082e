CREATE FUNCTION synchro._emit_activation(p_generation bigint) RETURNS void LANGUAGE c VOLATILE STRICT
AS 'MODULE_PATHNAME', 'synchro_emit_activation';
COMMENT ON FUNCTION synchro._emit_activation(bigint) IS
  'Message A: the worker activates the generation at the commit of this transaction.';
