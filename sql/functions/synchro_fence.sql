CREATE FUNCTION synchro.synchro_fence() RETURNS trigger LANGUAGE c
AS 'MODULE_PATHNAME', 'synchro_fence';
COMMENT ON FUNCTION synchro.synchro_fence() IS
  'AFTER INSERT OR UPDATE OR DELETE FOR EACH ROW: emits the fence of the row operation. Errors: 22P02 a value without portable '
  'form, 23514 the key changed, 54000 the row is too large, 0A000 COPY FREEZE, 55000 after the registration was completed.';
