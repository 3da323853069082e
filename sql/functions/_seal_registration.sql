CREATE FUNCTION synchro._seal_registration() RETURNS void LANGUAGE c VOLATILE STRICT
AS 'MODULE_PATHNAME', 'synchro_seal_registration';
COMMENT ON FUNCTION synchro._seal_registration() IS
  'The generation of this transaction is complete: a fence after it raises 55000.';
