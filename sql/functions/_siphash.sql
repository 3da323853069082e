CREATE FUNCTION synchro._siphash(p_key bytea, p_data bytea) RETURNS bytea LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'synchro_siphash';
COMMENT ON FUNCTION synchro._siphash(bytea, bytea) IS
  'SipHash-2-4 with 128-bit output; the key has 16 octets.';
