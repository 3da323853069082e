CREATE FUNCTION synchro._push_classify(p_schema_version bigint, p_mutations text)
RETURNS TABLE (ord int, rel_no int, code text, message text, incompatible text[])
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- What the manifests and the registration in force say of each mutation, before any value or row is looked at. code NULL: nothing
-- against it, rel_no is where it goes. A field is compared between the manifest that the mutation was authored under and the current
-- one, by its id; a manifest that the server never published can't vouch for any field.
BEGIN
  RETURN QUERY
  WITH m AS MATERIALIZED (
    SELECT r.ord, r.table_id, r.key_field, r.fields, a.schema_version AS authored
      FROM synchro._push_read(p_mutations) r
      LEFT JOIN synchro.manifest a ON a.schema_version = r.authored_version AND a.schema_hash = r.authored_hash
  ), shape AS MATERIALIZED (  -- mutations with the same fields get the same verdict
    SELECT row_number() OVER () AS no, s.* FROM (SELECT DISTINCT m.table_id, m.key_field, m.fields, m.authored FROM m) s
  ), verdict AS (
    SELECT s.no,
           array_agg(f.field_id ORDER BY f.field_id COLLATE "C")
             FILTER (WHERE s.authored IS NULL
                        OR (was.field_id IS NOT NULL
                            AND (cur.field_id IS NULL OR cur.type <> was.type OR cur.is_key <> was.is_key
                                 OR (NOT f.is_key AND was.writable AND NOT cur.writable)))) AS incompatible,
           bool_or(f.is_key AND cur.is_key IS NOT TRUE) AS wrong_key,
           bool_or(NOT f.is_key AND (was.field_id IS NULL OR cur.field_id IS NULL)) AS unknown_field,
           bool_or(NOT f.is_key AND NOT cur.writable) AS read_only_field
      FROM shape s
     CROSS JOIN LATERAL (SELECT s.key_field, true UNION ALL SELECT u.u, false FROM unnest(s.fields) u) AS f(field_id, is_key)
      LEFT JOIN synchro.relation l ON l.table_id::text = s.table_id
      LEFT JOIN synchro.manifest_field was ON was.schema_version = s.authored AND was.rel_no = l.rel_no
                                          AND was.field_id::text = f.field_id
      LEFT JOIN synchro.manifest_field cur ON cur.schema_version = p_schema_version AND cur.rel_no = l.rel_no
                                          AND cur.field_id::text = f.field_id
     GROUP BY s.no
  ), decided AS MATERIALIZED (
    SELECT s.*, v.incompatible, a.rel_no, c.code, c.message
      FROM shape s
      JOIN verdict v ON v.no = s.no
      LEFT JOIN synchro.active_registration a ON a.table_id::text = s.table_id AND a.kind = 'synced'
                                             AND a.schema_version = p_schema_version
     CROSS JOIN LATERAL (
       SELECT w.code, w.message FROM (VALUES
         (1, v.incompatible IS NOT NULL, 'schema_incompatible', 'authored mutation cannot be represented by the current schema'),
         (2, a.rel_no IS NULL, 'table_not_synced', 'the table is not synced'),
         (3, a.push_policy = 'read_only', 'policy_rejected', 'the table is read-only'),
         (4, v.wrong_key, 'validation_failed', 'the key field is not the one of the table'),
         (5, v.unknown_field, 'validation_failed', 'a field is not part of the schema'),
         (6, v.read_only_field, 'validation_failed', 'a field is not writable'),
         (7, true, NULL, NULL)) AS w(step, applies, code, message)
       WHERE w.applies ORDER BY w.step LIMIT 1) AS c
  )
  SELECT m.ord, CASE WHEN d.code IS NULL THEN d.rel_no END, d.code, d.message, d.incompatible
    FROM m JOIN decided d ON d.table_id = m.table_id AND d.key_field = m.key_field AND d.fields = m.fields
                         AND d.authored IS NOT DISTINCT FROM m.authored;
END
$fn$;
