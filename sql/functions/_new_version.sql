CREATE FUNCTION synchro._new_version() RETURNS text LANGUAGE c VOLATILE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'synchro_new_version';
COMMENT ON FUNCTION synchro._new_version() IS
  'A fresh opaque version: base64url of 96 random bits.';
