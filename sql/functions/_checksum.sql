CREATE FUNCTION synchro._checksum(p_digest bytea) RETURNS text LANGUAGE sql IMMUTABLE STRICT
RETURN '{"algorithm":"sha256","version":1,"encoding":"hex","digest":"' || pg_catalog.encode(p_digest, 'hex') || '"}';
