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
    SELECT string_agg(to_json(m.scope_id) || ':' || synchro._checksum(coalesce(m.digest, synchro._verify_scope_digest(p_schema_hash, m.scope_id, '{}', '{}'))),
                      ',' ORDER BY m.scope_id COLLATE "C") AS members
      INTO v_found
      FROM (SELECT array_agg(a.scope_id ORDER BY a.n) FILTER (WHERE c.scope_no IS NOT NULL) AS ids, array_agg(c.scope_no ORDER BY a.n) FILTER (WHERE c.scope_no IS NOT NULL) AS nos,
                   array_agg(c.high_lsn ORDER BY a.n) FILTER (WHERE c.scope_no IS NOT NULL) AS highs, array_agg(a.scope_id) FILTER (WHERE c.scope_no IS NULL) AS empty
              FROM unnest(p_scopes) WITH ORDINALITY a (scope_id, n) LEFT JOIN synchro.scope c ON c.scope_id = a.scope_id) s
     CROSS JOIN LATERAL (SELECT u.scope_id, u.digest FROM unnest(s.ids, synchro._cached_digests(p_schema_version, s.nos, s.ids, s.highs)) u (scope_id, digest)
                         UNION ALL SELECT e.scope_id, NULL FROM unnest(s.empty) e (scope_id)) m;
  END IF;
  RETURN coalesce(v_found.members, '');
END
$fn$;
