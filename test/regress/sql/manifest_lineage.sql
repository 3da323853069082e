-- The class of a step between two manifests, and the floor that a lineage may state.
SET client_min_messages = warning;
CREATE SCHEMA lineage;
-- "tables" with one table a and the given fields and further members; by default one nullable string field besides the key.
CREATE FUNCTION lineage.tables(p_fields text DEFAULT '', p_more jsonb DEFAULT '{}') RETURNS jsonb LANGUAGE sql AS $$
  SELECT jsonb_build_array(jsonb_build_object('table_id', '00000000-0000-4000-8000-00000000000a', 'name', 'a', 'composition', 'single_scope',
    'primary_key_field_id', '00000000-0000-4000-8000-0000000000a1',
    'lifecycle', '{"created_at_field_id":null,"updated_at_field_id":null,"deleted_at_field_id":null}'::jsonb,
    'fields', ('[{"field_id":"00000000-0000-4000-8000-0000000000a1","name":"id","type":"string","nullable":false,"writable":false}' || p_fields || ']')::jsonb,
    'indexes', '[]'::jsonb) || p_more)
$$;
CREATE FUNCTION lineage.field(p_name text, p_type text DEFAULT 'string', p_nullable boolean DEFAULT true) RETURNS text LANGUAGE sql AS $$
  SELECT format(',{"field_id":"00000000-0000-4000-8000-0000000000a2","name":%s,"type":%s,"nullable":%s,"writable":true}',
                to_json(p_name), to_json(p_type), to_json(p_nullable))
$$;
CREATE FUNCTION lineage.step(p_old jsonb, p_new jsonb, p_rematerialized uuid[] DEFAULT '{}') RETURNS text LANGUAGE sql AS $$
  SELECT coalesce(synchro._transition_class(p_old, p_new, p_rematerialized), 'none')
$$;
SELECT lineage.step(lineage.tables(), lineage.tables()) AS nothing,
       lineage.step('[]', lineage.tables()) AS empty_table,
       lineage.step('[]', lineage.tables(), '{00000000-0000-4000-8000-00000000000a}') AS table_with_rows,
       lineage.step(lineage.tables(), '[]') AS table_removed;
SELECT lineage.step(lineage.tables(), lineage.tables(lineage.field('b'))) AS nullable_field,
       lineage.step(lineage.tables(), lineage.tables(lineage.field('b')), '{00000000-0000-4000-8000-0000000000a2}') AS field_with_history,
       lineage.step(lineage.tables(), lineage.tables(lineage.field('b', 'string', false))) AS not_null_field,
       lineage.step(lineage.tables(lineage.field('b')), lineage.tables()) AS field_removed,
       lineage.step(lineage.tables(lineage.field('b')), lineage.tables(lineage.field('c'))) AS field_renamed,
       lineage.step(lineage.tables(lineage.field('b')), lineage.tables(lineage.field('b', 'int'))) AS type_changed,
       lineage.step(lineage.tables(lineage.field('b', 'string', false)), lineage.tables(lineage.field('b'))) AS not_null_relaxed,
       lineage.step(lineage.tables(lineage.field('b')), lineage.tables(lineage.field('b', 'string', false))) AS not_null_set;
SELECT lineage.step(lineage.tables(), lineage.tables('', '{"composition":"multi_scope"}')) AS composition,
       lineage.step(lineage.tables(lineage.field('b')), lineage.tables(lineage.field('b'),
         '{"lifecycle":{"created_at_field_id":null,"updated_at_field_id":null,"deleted_at_field_id":"00000000-0000-4000-8000-0000000000a2"}}')) AS deletion_field,
       lineage.step(lineage.tables(lineage.field('b')), lineage.tables(lineage.field('b'), '{"primary_key_field_id":"00000000-0000-4000-8000-0000000000a2"}')) AS key_changed,
       lineage.step(lineage.tables(), lineage.tables('', '{"name":"x"}')) AS table_renamed,
       lineage.step(lineage.tables(), lineage.tables('', '{"indexes":[{"index_id":"i","name":"i","field_ids":[],"unique":false}]}')) AS index_added;

-- A removal outweighs rows of a new table, which outweigh a compatible change.
SELECT lineage.step(lineage.tables(lineage.field('b')), lineage.tables('', '{"composition":"multi_scope"}')) AS strongest_wins;

-- What the table of manifests accepts as lineage.
CREATE FUNCTION lineage.accepts(p_version bigint, p_parent bigint, p_class text, p_floor bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO synchro.manifest (schema_version, schema_hash, parent_version, transition_class, compatibility_floor, body)
  VALUES (p_version, repeat('ab', 32), p_parent, p_class, p_floor, '{}');
  RAISE EXCEPTION USING ERRCODE = 'OK000';
EXCEPTION
  WHEN SQLSTATE 'OK000' THEN RETURN true;
  WHEN check_violation OR foreign_key_violation THEN RETURN false;
END
$$;
SELECT coalesce(max(schema_version), 0) AS v FROM synchro.manifest \gset
SELECT lineage.accepts(900, NULL, 'initial', 900) AS initial, lineage.accepts(900, NULL, 'initial', 899) AS initial_older,
       lineage.accepts(900, :v, 'initial', 900) AS initial_with_parent, lineage.accepts(900, NULL, 'class_3', 900) AS no_parent,
       lineage.accepts(900, 899, 'class_3', 900) AS unknown_parent;
SELECT lineage.accepts(900, :v, 'class_2', :v) AS floor_of_parent, lineage.accepts(900, :v, 'class_2', :v + 1) AS newer_than_parent,
       lineage.accepts(900, :v, 'class_2', 900) AS own_version, lineage.accepts(900, :v, 'class_2', 901) AS newer_than_own, lineage.accepts(900, :v, 'class_2', 0) AS zero;
SELECT c, lineage.accepts(900, :v, c, 900) AS own_version, lineage.accepts(900, :v, c, :v) AS older FROM unnest('{class_3,class_4}'::text[]) c;
-- Whether a table is empty its rows tell, not its statistics: with a compatible step the floor is the parent's.
BEGIN;
CREATE TABLE lineage.emptied (id int PRIMARY KEY);
GRANT USAGE ON SCHEMA lineage TO synchro_owner, synchro_worker;
GRANT SELECT ON lineage.emptied TO synchro_owner, synchro_worker;
INSERT INTO lineage.emptied SELECT generate_series(1, 100);
ANALYZE lineage.emptied;
DELETE FROM lineage.emptied;
SELECT reltuples FROM pg_class WHERE oid = 'lineage.emptied'::regclass;
CREATE FUNCTION lineage.scopes(p_row_key int) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro BEGIN ATOMIC SELECT 'lineage'::text; END;
REVOKE EXECUTE ON FUNCTION lineage.scopes(int) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION lineage.scopes(int) TO synchro_worker;
SELECT synchro.synchro_register_table('lineage.emptied', 'lineage.scopes', p_push_policy => 'read_only');
SET CONSTRAINTS ALL IMMEDIATE;
SELECT m.transition_class, m.compatibility_floor = p.compatibility_floor AS floor_of_parent
  FROM synchro.manifest m JOIN synchro.manifest p ON p.schema_version = m.parent_version ORDER BY m.schema_version DESC LIMIT 1;
ROLLBACK;
DROP SCHEMA lineage CASCADE;
