CREATE FUNCTION synchro._secret_key_changed() RETURNS trigger LANGUAGE c
AS 'MODULE_PATHNAME', 'synchro_secret_key_changed';
COMMENT ON FUNCTION synchro._secret_key_changed() IS
  'Tells every backend, at commit, to read the keys again.';
CREATE TRIGGER secret_key_changed AFTER INSERT OR UPDATE OR DELETE ON synchro.secret_key
  FOR EACH STATEMENT EXECUTE FUNCTION synchro._secret_key_changed();
