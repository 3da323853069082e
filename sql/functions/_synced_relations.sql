CREATE FUNCTION synchro._synced_relations(p_schema_version bigint)
RETURNS TABLE (rel_no int, table_id uuid, pk_type text, key_field_id uuid, projection text, key_column text, key_type text)
LANGUAGE sql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- The tables of a manifest: their ids, key, and where their rows are: column key_column of synchro_data.projection, of key_type.
SELECT f.rel_no, r.table_id, f.type, f.field_id, 'r_' || f.rel_no, 'c' || f.attnum, c.storage_type
  FROM synchro.manifest_field f
  JOIN synchro.relation r ON r.rel_no = f.rel_no
  JOIN synchro.captured_column c ON c.rel_no = f.rel_no AND c.attnum = f.attnum
 WHERE f.schema_version = p_schema_version AND f.is_key
$fn$;
