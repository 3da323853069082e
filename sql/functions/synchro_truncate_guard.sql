CREATE FUNCTION synchro.synchro_truncate_guard() RETURNS trigger LANGUAGE c
AS 'MODULE_PATHNAME', 'synchro_truncate_guard';
COMMENT ON FUNCTION synchro.synchro_truncate_guard() IS
  'BEFORE TRUNCATE FOR EACH STATEMENT: refuses it with 0A000.';
