CREATE FUNCTION synchro._checksum(p_hex text) RETURNS text LANGUAGE sql IMMUTABLE STRICT
RETURN '{"algorithm":"sha256","version":1,"encoding":"hex","digest":"' || p_hex || '"}';
COMMENT ON FUNCTION synchro._checksum(text) IS 'checksum object of a digest; inlined, so it has no search_path';
