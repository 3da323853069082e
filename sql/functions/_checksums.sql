CREATE FUNCTION synchro._checksums(p_scopes text[], p_schema_version bigint, p_schema_hash text) RETURNS text LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Members "scope id": checksum of the given scopes (in the order of their ids) as they are in this snapshot. A scope without a
-- number is empty; the others are mostly in the cache.
DECLARE
  v_found record;
BEGIN
  SELECT string_agg(to_json(a.scope_id) || ':' || synchro._checksum(
           CASE WHEN c.scope_no IS NULL THEN synchro._verify_scope_digest(p_schema_hash, a.scope_id, '{}', '{}') ELSE k.digest END), ',' ORDER BY a.n)
           AS members,
         coalesce(bool_or(c.scope_no IS NOT NULL AND k.digest IS NULL), false) AS missing
    INTO v_found
    FROM unnest(p_scopes) WITH ORDINALITY a (scope_id, n)
    LEFT JOIN synchro.scope c ON c.scope_id = a.scope_id
    LEFT JOIN synchro.scope_digest_cache k ON k.scope_no = c.scope_no AND k.schema_version = p_schema_version AND k.high_lsn = c.high_lsn;
  IF v_found.missing THEN
    SELECT string_agg(to_json(s.scope_id) || ':' || synchro._checksum(
             CASE WHEN s.scope_no IS NULL THEN synchro._verify_scope_digest(p_schema_hash, s.scope_id, '{}', '{}') ELSE d.digest END), ',')
             AS members
      INTO v_found
      FROM (SELECT a.scope_id, c.scope_no, c.high_lsn
              FROM unnest(p_scopes) WITH ORDINALITY a (scope_id, n) LEFT JOIN synchro.scope c ON c.scope_id = a.scope_id
             ORDER BY a.n OFFSET 0) s
      -- In this order: sessions that compute several digests take turns without waiting for each other.
      LEFT JOIN LATERAL synchro._cached_digest(s.scope_no, p_schema_version, s.scope_id, s.high_lsn) d ON true;
  END IF;
  RETURN coalesce(v_found.members, '');
END
$fn$;
