CREATE FUNCTION synchro._push_classify(p_schema_version bigint, p_mutations json)
RETURNS TABLE (ord int, rel_no int, code text, message text, incompatible text[])
LANGUAGE sql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- What the manifests and the registration in force say of each mutation, before any value or row is looked at. code NULL: nothing
-- against it, rel_no is where it goes. A field is compared between the manifest that the mutation was authored under and the current
-- one, by its id; a manifest that the server never published can't vouch for any field.
WITH m AS MATERIALIZED (
  SELECT e.ord::int AS ord, x."table" AS table_id, x.pk, x.columns, a.schema_version AS authored
    FROM json_array_elements(p_mutations) WITH ORDINALITY AS e(value, ord)
   CROSS JOIN LATERAL json_to_record(e.value) AS x("table" text, pk json, columns json, authored_schema json)
    LEFT JOIN synchro.manifest a ON a.schema_version = (x.authored_schema->>'version')::bigint
                                AND a.schema_hash = x.authored_schema->>'hash'
), field AS (
  SELECT m.ord, k.field_id, k.is_key FROM m
   CROSS JOIN LATERAL (SELECT p.p, true FROM json_object_keys(m.pk) AS p
                       UNION ALL SELECT c.c, false FROM json_object_keys(m.columns) AS c) AS k(field_id, is_key)
), known AS (
  SELECT f.schema_version, f.rel_no, f.field_id::text AS field_id, f.type, f.writable, f.is_key FROM synchro.manifest_field f
   WHERE f.schema_version = p_schema_version OR f.schema_version IN (SELECT m.authored FROM m)
), verdict AS (
  SELECT m.ord,
         array_agg(f.field_id ORDER BY f.field_id COLLATE "C")
           FILTER (WHERE m.authored IS NULL
                      OR (was.field_id IS NOT NULL
                          AND (is_now.field_id IS NULL OR is_now.type <> was.type OR is_now.is_key <> was.is_key
                               OR (NOT f.is_key AND was.writable AND NOT is_now.writable)))) AS incompatible,
         bool_or(f.is_key AND is_now.is_key IS NOT TRUE) AS wrong_key,
         bool_or(NOT f.is_key AND (was.field_id IS NULL OR is_now.field_id IS NULL)) AS unknown_field,
         bool_or(NOT f.is_key AND NOT is_now.writable) AS read_only_field
    FROM m
    JOIN field f ON f.ord = m.ord
    LEFT JOIN synchro.relation l ON l.table_id::text = m.table_id
    LEFT JOIN known was ON was.schema_version = m.authored AND was.rel_no = l.rel_no AND was.field_id = f.field_id
    LEFT JOIN known is_now ON is_now.schema_version = p_schema_version AND is_now.rel_no = l.rel_no AND is_now.field_id = f.field_id
   GROUP BY m.ord
)
SELECT m.ord, CASE WHEN c.code IS NULL THEN r.rel_no END, c.code, c.message, v.incompatible
  FROM m
  JOIN verdict v ON v.ord = m.ord
  LEFT JOIN synchro.active_registration r ON r.table_id::text = m.table_id AND r.kind = 'synced'
                                         AND r.schema_version = p_schema_version
 CROSS JOIN LATERAL (
   SELECT w.code, w.message FROM (VALUES
     (1, v.incompatible IS NOT NULL, 'schema_incompatible', 'authored mutation cannot be represented by the current schema'),
     (2, r.rel_no IS NULL, 'table_not_synced', 'the table is not synced'),
     (3, r.push_policy = 'read_only', 'policy_rejected', 'the table is read-only'),
     (4, v.wrong_key, 'validation_failed', 'the key field is not the one of the table'),
     (5, v.unknown_field, 'validation_failed', 'a field is not part of the schema'),
     (6, v.read_only_field, 'validation_failed', 'a field is not writable'),
     (7, true, NULL, NULL)) AS w(step, applies, code, message)
   WHERE w.applies ORDER BY w.step LIMIT 1) AS c
$fn$;
