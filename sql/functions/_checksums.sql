CREATE FUNCTION synchro._checksums(p_scopes text[], p_schema_version bigint) RETURNS text LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Members "scope id": checksum of the given scopes (in the order of their ids) as they are in this snapshot.
BEGIN
  RETURN coalesce((
    SELECT string_agg(to_json(s.scope_id) || ':' || synchro._checksum(decode(coalesce(s.digest, d.digest, n.digest), 'hex')), ',')
      FROM (SELECT a.scope_id, c.scope_no, c.high_lsn, k.digest
              FROM unnest(p_scopes) WITH ORDINALITY a (scope_id, n)
              LEFT JOIN synchro.scope c ON c.scope_id = a.scope_id
              LEFT JOIN synchro.scope_digest_cache k ON k.scope_no = c.scope_no AND k.schema_version = p_schema_version
                                                    AND k.high_lsn = c.high_lsn
             ORDER BY a.n OFFSET 0) s
      -- Strict functions: not called where an argument is NULL. In this order, so that sessions that compute several digests take
      -- turns without waiting for each other.
      LEFT JOIN LATERAL synchro._cached_digest(CASE WHEN s.digest IS NULL THEN s.scope_no END, p_schema_version, s.scope_id, s.high_lsn) d ON true
      LEFT JOIN LATERAL synchro._scope_digest(CASE WHEN s.scope_no IS NULL THEN 0 END, p_schema_version, s.scope_id) n ON true), '');
END
$fn$;
