CREATE FUNCTION synchro._registration_fields(p_generation bigint, p_rel_no int)
RETURNS TABLE (field_id uuid, column_name name, attnum smallint, type text, as_text boolean, nullable boolean, writable boolean,
               is_key boolean, "precision" int, scale int)
LANGUAGE sql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- The synced fields of a registration as the catalog describes them now.
-- Writable: push is enabled and the field is neither key, lifecycle, generated nor an always-identity column.
SELECT c.field_id, c.column_name, c.attnum, p.type, c.column_name = ANY (r.text_columns), c.column_name <> ALL (r.required_columns),
       r.push_policy = 'enabled' AND a.attnum <> r.key_attnum AND a.attgenerated = '' AND a.attidentity <> 'a'
         AND c.column_name NOT IN (coalesce(r.created_at_column, ''), coalesce(r.updated_at_column, ''),
                                   coalesce(r.deleted_at_column, '')),
       a.attnum = r.key_attnum,
       CASE WHEN p.type = 'decimal' AND d.typmod >= 4 THEN ((d.typmod - 4) >> 16) & 65535 END,
       CASE WHEN p.type = 'decimal' AND d.typmod >= 4 THEN (((d.typmod - 4) & 2047) # 1024) - 1024 END
  FROM synchro.registration r
  JOIN synchro.relation l ON l.rel_no = r.rel_no
  JOIN synchro.captured_column c ON c.rel_no = r.rel_no AND c.column_name = ANY (r.sync_columns)
  JOIN pg_attribute a ON a.attrelid = l.relation_oid AND a.attnum = c.attnum
  CROSS JOIN LATERAL (SELECT synchro._portable_type(a.atttypid, c.column_name = ANY (r.text_columns)) AS type) p
  CROSS JOIN LATERAL (
    WITH RECURSIVE chain AS (   -- through domains
      SELECT a.atttypid AS typid, a.atttypmod AS typmod
      UNION ALL
      SELECT t.typbasetype, t.typtypmod FROM chain h JOIN pg_type t ON t.oid = h.typid AND t.typtype = 'd'
    )
    SELECT max(typmod) AS typmod FROM chain) d
 WHERE r.generation = p_generation AND r.rel_no = p_rel_no
$fn$;
