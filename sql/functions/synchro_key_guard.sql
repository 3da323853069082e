CREATE FUNCTION synchro.synchro_key_guard() RETURNS trigger LANGUAGE c
AS 'MODULE_PATHNAME', 'synchro_key_guard';
COMMENT ON FUNCTION synchro.synchro_key_guard() IS
  'BEFORE UPDATE OF <key> FOR EACH ROW: refuses a change of the key with 23514.';
