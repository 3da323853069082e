CREATE FUNCTION synchro._checksum(p_hex text) RETURNS text LANGUAGE sql IMMUTABLE STRICT
RETURN '{"algorithm":"sha256","version":1,"encoding":"hex","digest":"' || p_hex || '"}';
COMMENT ON FUNCTION synchro._checksum(text) IS 'checksum object of a digest in hex; inlined, so it has no search_path';

CREATE FUNCTION synchro._checksum(p_digest bytea) RETURNS text LANGUAGE sql IMMUTABLE STRICT
RETURN '{"algorithm":"sha256","version":1,"encoding":"hex","digest":"' || pg_catalog.encode(p_digest, 'hex') || '"}';
COMMENT ON FUNCTION synchro._checksum(bytea) IS 'checksum object of a digest; inlined, so it has no search_path';
