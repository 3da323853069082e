-- Manifest bodies: order does not matter where it has no meaning, every rule holds, a given hash is verified.
CREATE FUNCTION pg_temp.body(p_path text[] DEFAULT NULL, p_value jsonb DEFAULT NULL) RETURNS json LANGUAGE sql AS $$
  SELECT CASE WHEN p_path IS NULL THEN b WHEN p_path = '{}' THEN p_value WHEN p_value IS NULL THEN b #- p_path ELSE jsonb_set(b, p_path, p_value) END::json FROM (SELECT '{
    "schema_version": 2, "parent_schema": {"version": 1, "hash": "0000000000000000000000000000000000000000000000000000000000000000"}, "transition_class": "class_3", "compatibility_floor": 2,
    "tables": [{"table_id": "t1", "relation_id": "r1", "name": "one", "composition": "single_scope", "primary_key_field_id": "f1",
      "lifecycle": {"created_at_field_id": null, "updated_at_field_id": null, "deleted_at_field_id": "f2"},
      "fields": [{"field_id": "f1", "name": "id", "type": "int64", "nullable": false, "writable": false},
                 {"field_id": "f2", "name": "gone", "type": "datetime", "nullable": true, "writable": false},
                 {"field_id": "f3", "name": "price", "type": "decimal", "nullable": true, "writable": true, "precision": 6, "scale": 2}],
      "indexes": [{"index_id": "i1", "name": "x", "field_ids": ["f3", "f1"], "unique": false}, {"index_id": "i2", "name": "y", "field_ids": ["f2"], "unique": true}]},
      {"table_id": "t0", "relation_id": "r2", "name": "two", "composition": "multi_scope", "primary_key_field_id": "k",
       "lifecycle": {"created_at_field_id": null, "updated_at_field_id": null, "deleted_at_field_id": null},
       "fields": [{"field_id": "k", "name": "id", "type": "string", "nullable": false, "writable": false}], "indexes": []}]}'::jsonb AS b) x $$;
CREATE FUNCTION pg_temp.refused(p_path text[], p_value jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE v_detail text;
BEGIN
  PERFORM synchro._manifest_hash(pg_temp.body(p_path, p_value));
  RETURN 'accepted';
EXCEPTION WHEN invalid_parameter_value THEN
  GET STACKED DIAGNOSTICS v_detail = PG_EXCEPTION_DETAIL;
  RETURN v_detail;
END $$;

SELECT synchro._manifest_hash(pg_temp.body()) AS hash;
SELECT synchro._manifest_hash('{"compatibility_floor":1,"parent_schema":null,"schema_version":1,"tables":[],"transition_class":"initial"}') =
  encode(sha256('synchro:v3:schema-manifest:v1'::bytea || '\x00' || '{"compatibility_floor":1,"parent_schema":null,"schema_version":1,"tables":[],"transition_class":"initial"}'), 'hex') AS empty;

-- Order of tables, fields and indexes has no meaning, that of an index's fields has.
WITH b AS (SELECT pg_temp.body()::jsonb AS b)
SELECT h.what, synchro._manifest_hash(h.body::json) = synchro._manifest_hash(b.b::json) AS same
FROM b, LATERAL (VALUES
  ('tables', jsonb_set(b, '{tables}', jsonb_build_array(b#>'{tables,1}', b#>'{tables,0}'))),
  ('fields', jsonb_set(b, '{tables,0,fields}', jsonb_build_array(b#>'{tables,0,fields,2}', b#>'{tables,0,fields,0}', b#>'{tables,0,fields,1}'))),
  ('indexes', jsonb_set(b, '{tables,0,indexes}', jsonb_build_array(b#>'{tables,0,indexes,1}', b#>'{tables,0,indexes,0}'))),
  ('hash', b || jsonb_build_object('schema_hash', synchro._manifest_hash(b::json))),
  ('fields of an index', jsonb_set(b, '{tables,0,indexes,0,field_ids}', '["f1","f3"]'))) h(what, body);

SELECT path, value, pg_temp.refused(path::text[], value::jsonb) FROM (VALUES
  ('{schema_hash}', '"00"'), ('{tables,0,table_id}', '"t0"'), ('{tables,0,relation_id}', '"r2"'), ('{tables,0,name}', '"two"'), ('{tables,0,table_id}', '""'), ('{tables,0,composition}', '"any"'),
  ('{tables,0,primary_key_field_id}', '"f9"'), ('{tables,0,primary_key_field_id}', '"f2"'), ('{tables,0,fields,0,nullable}', 'true'), ('{tables,0,fields,0,writable}', 'true'), ('{tables,0,fields,0,type}', '"date"'),
  ('{tables,0,fields,1,field_id}', '"f1"'), ('{tables,0,fields,1,name}', '"id"'), ('{tables,0,fields,1,type}', '"text"'), ('{tables,0,fields,1,nullable}', 'null'), ('{tables,0,fields,1,precision}', '6'),
  ('{tables,0,fields,2,precision}', NULL), ('{tables,0,fields,2,scale}', NULL), ('{tables,0,fields,2,precision}', '0'), ('{tables,0,fields,2,scale}', '-1000'), ('{tables,0,fields,2,scale}', '1001'), ('{tables,0,fields,2,extra}', '1'),
  ('{tables,0,lifecycle,deleted_at_field_id}', '"f9"'), ('{tables,0,lifecycle,deleted_at_field_id}', NULL), ('{tables,0,indexes,0,field_ids}', '["f9"]'), ('{tables,0,indexes,0,field_ids}', '[]'),
  ('{tables,0,indexes,0,index_id}', '"i2"'), ('{tables,0,indexes,0,unique}', '1'), ('{tables,0,indexes}', '{}'), ('{tables}', '{}'), ('{tables}', NULL), ('{extra}', '1'), ('{transition_class}', '"class_1"'),
  ('{parent_schema}', 'null'), ('{parent_schema,hash}', '"00"'), ('{schema_version}', '1'), ('{schema_version}', '"2"'), ('{compatibility_floor}', '1')) v(path, value);

-- Lineage.
SELECT version, parent, class, floor, coalesce(synchro._manifest_hash(json_build_object('schema_version', version, 'transition_class', class, 'compatibility_floor', floor, 'tables', '[]'::json,
  'parent_schema', CASE WHEN parent IS NOT NULL THEN json_build_object('version', parent, 'hash', repeat('0', 64)) END)), '') <> '' AS ok
FROM (VALUES (8, NULL, 'initial', 8), (8, 7, 'class_2', 7), (8, 5, 'class_2', 3), (8, 7, 'class_3', 8), (8, 7, 'class_4', 8)) v(version, parent, class, floor);
SELECT version, parent, class, floor, pg_temp.refused('{}', json_build_object('schema_version', version, 'transition_class', class, 'compatibility_floor', floor, 'tables', '[]'::json,
  'parent_schema', CASE WHEN parent IS NOT NULL THEN json_build_object('version', parent, 'hash', repeat('0', 64)) END)::jsonb)
FROM (VALUES (8, NULL, 'initial', 7), (8, 5, 'class_2', 6), (8, 7, 'class_2', 8), (8, 7, 'class_2', 9), (8, 7, 'class_2', 0), (8, 7, 'class_3', 7), (8, 7, 'class_4', 7), (8, 8, 'class_3', 8), (8, 7, 'initial', 8)) v(version, parent, class, floor);
