CREATE FUNCTION synchro._manifest_tables(p_generation bigint) RETURNS jsonb LANGUAGE sql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Member "tables" of a generation's manifest (docs/integrity.md): tables, fields and indexes in id order.
WITH t AS (
  SELECT r.*, l.table_id, l.relation_id, l.relation_oid, l.physical_schema, l.physical_relation,
         count(*) OVER (PARTITION BY l.physical_relation) > 1 AS shared_name
    FROM synchro.registration r JOIN synchro.relation l ON l.rel_no = r.rel_no
   WHERE r.generation = p_generation AND r.kind = 'synced'
)
SELECT coalesce(jsonb_agg(jsonb_build_object(
  'table_id', t.table_id, 'relation_id', t.relation_id,
  'name', CASE WHEN t.shared_name THEN t.physical_schema || '.' || t.physical_relation ELSE t.physical_relation END,
  'composition', t.composition,
  'primary_key_field_id', (SELECT f.field_id FROM synchro._registration_fields(t.generation, t.rel_no) f WHERE f.is_key),
  'lifecycle', (SELECT jsonb_build_object(
      'created_at_field_id', max(f.field_id::text) FILTER (WHERE f.column_name = t.created_at_column),
      'updated_at_field_id', max(f.field_id::text) FILTER (WHERE f.column_name = t.updated_at_column),
      'deleted_at_field_id', max(f.field_id::text) FILTER (WHERE f.column_name = t.deleted_at_column))
    FROM synchro._registration_fields(t.generation, t.rel_no) f),
  'fields', (SELECT jsonb_agg(jsonb_build_object('field_id', f.field_id, 'name', f.column_name, 'type', f.type,
                                                 'nullable', f.nullable, 'writable', f.writable)
                              || CASE WHEN f."precision" IS NULL THEN '{}'::jsonb
                                      ELSE jsonb_build_object('precision', f."precision", 'scale', f.scale) END
                              ORDER BY f.field_id)
             FROM synchro._registration_fields(t.generation, t.rel_no) f),
  'indexes', (SELECT coalesce(jsonb_agg(jsonb_build_object('index_id', x.index_id, 'name', c.relname, 'unique', i.indisunique,
                       'field_ids', (SELECT jsonb_agg(k.field_id ORDER BY u.n) FROM unnest(i.indkey::smallint[]) WITH ORDINALITY u(attnum, n)
                                      JOIN synchro.captured_column k ON k.rel_no = t.rel_no AND k.attnum = u.attnum
                                      WHERE u.n <= i.indnkeyatts)) ORDER BY x.index_id), '[]')
              FROM synchro.relation_index x JOIN pg_index i ON i.indexrelid = x.index_oid JOIN pg_class c ON c.oid = i.indexrelid
             WHERE x.rel_no = t.rel_no AND i.indrelid = t.relation_oid
               AND NOT EXISTS (SELECT FROM unnest(i.indkey::smallint[]) WITH ORDINALITY u(attnum, n)   -- may be of columns that are synced no more
                                LEFT JOIN synchro.captured_column k ON k.rel_no = t.rel_no AND k.attnum = u.attnum AND k.column_name = ANY (t.sync_columns)
                                WHERE u.n <= i.indnkeyatts AND k.attnum IS NULL))
) ORDER BY t.table_id), '[]')
FROM t
$fn$;
