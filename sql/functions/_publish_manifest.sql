CREATE FUNCTION synchro._publish_manifest(p_generation bigint, p_rematerialized uuid[]) RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- The schema version of a generation: that of the one it was made from when nothing of it changed, else a new immutable row.
DECLARE
  v_old     synchro.manifest;
  v_tables  jsonb := synchro._manifest_tables(p_generation);
  v_class   text;
  v_version bigint;
  v_body    jsonb;
  v_hash    text;
BEGIN
  SELECT m.* INTO v_old FROM synchro.registry_generation g
    JOIN synchro.registry_generation b ON b.generation = g.base JOIN synchro.manifest m ON m.schema_version = b.schema_version
   WHERE g.generation = p_generation;
  v_class := synchro._transition_class(v_old.body::jsonb->'tables', v_tables, p_rematerialized);
  IF v_class IS NULL THEN
    RETURN v_old.schema_version;
  END IF;
  v_version := synchro._next((SELECT max(m.schema_version) FROM synchro.manifest m));
  v_body := jsonb_build_object(
    'schema_version', v_version, 'parent_schema', jsonb_build_object('version', v_old.schema_version, 'hash', v_old.schema_hash),
    'transition_class', v_class, 'tables', v_tables,
    'compatibility_floor', CASE v_class WHEN 'class_2' THEN v_old.compatibility_floor ELSE v_version END);
  v_hash := synchro._manifest_hash(v_body::json);
  INSERT INTO synchro.manifest (schema_version, schema_hash, parent_version, transition_class, compatibility_floor, body)
  VALUES (v_version, v_hash, v_old.schema_version, v_class, (v_body->>'compatibility_floor')::bigint,
          synchro._jcs((v_body || jsonb_build_object('schema_hash', v_hash))::json));
  INSERT INTO synchro.manifest_field (schema_version, rel_no, field_id, column_name, attnum, type, as_text, nullable, writable, is_key)
  SELECT v_version, r.rel_no, f.field_id, f.column_name, f.attnum, f.type, f.as_text, f.nullable, f.writable, f.is_key
    FROM synchro.registration r CROSS JOIN LATERAL synchro._registration_fields(r.generation, r.rel_no) f
   WHERE r.generation = p_generation AND r.kind = 'synced';
  RETURN v_version;
END
$fn$;
