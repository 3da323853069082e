-- What manifests and registration say of a mutation.
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set fixture :abs_srcdir /fixtures/push.sql
\i :fixture
\set ECHO all
-- a table that nobody registered, a table id that is no uuid
SELECT code, message FROM pt.push('ann', 'b1', (pt.m('m1', 'insert', 'shop.note', '1', '{}')::jsonb || jsonb_build_object('table', pt.id('no table')))::json);
SELECT code, message FROM pt.push('ann', 'b2', (pt.m('m2', 'insert', 'shop.note', '1', '{}')::jsonb || '{"table": "note"}')::json);
-- a table that clients only read, even with a wrong field
SELECT code, message FROM pt.push('ann', 'b3', pt.m('m3', 'insert', 'shop.price_list', '"a"', '{"amount": 1}'),
                                              pt.m('m4', 'delete', 'shop.price_list', '"a"'));
-- a field that is not writable: the key, a lifecycle column
SELECT code, message FROM pt.push('ann', 'b4', pt.m('m5', 'insert', 'shop.note', to_json(pt.id('n1')), json_build_object('id', pt.id('n1'))));
SELECT code, message FROM pt.push('ann', 'b5', pt.m('m6', 'insert', 'shop.note', to_json(pt.id('n1')), '{"created_at": "2026-01-01T00:00:00.000000Z"}'));
SELECT code, message FROM pt.push('ann', 'b6', pt.m('m7', 'insert', 'shop.task', '"1"', '{"deleted_at": "2026-01-01T00:00:00.000000Z"}'));
-- a field that never was; another field as key
SELECT code, message FROM pt.push('ann', 'b7', pt.m('m8', 'insert', 'shop.note', to_json(pt.id('n1')), '{"nothing": 1}'));
SELECT code, message FROM pt.push('ann', 'b8', (pt.m('m9', 'insert', 'shop.note', to_json(pt.id('n1')), '{}')::jsonb
  || jsonb_build_object('pk', jsonb_build_object(pt.field('shop.note', 'title'), 'x')))::json);
-- of several reasons the first counts: read-only before an unknown field
SELECT code, message FROM pt.push('ann', 'b9', pt.m('m10', 'insert', 'shop.price_list', '"a"', '{"nothing": 1}'));
SELECT count(*) FROM shop.note;

-- authored under an older manifest
CREATE TABLE pt.old AS SELECT pt.schema_ref()::jsonb AS schema, pt.field('shop.note', 'qty') AS qty, pt.field('shop.note', 'slug') AS slug,
  (SELECT table_id FROM synchro.relation WHERE relation_oid = 'shop.task'::regclass) AS task, pt.field('shop.task', 'id') AS task_id;
CREATE FUNCTION pt.old(p_mutation json) RETURNS json LANGUAGE sql AS
  'SELECT (p_mutation::jsonb || jsonb_build_object(''authored_schema'', schema))::json FROM pt.old';
-- task is gone; of note, slug is gone and qty became text
ALTER TABLE shop.note ALTER qty TYPE text;
UPDATE synchro.captured_column SET source_type = 'text'::regtype, storage_type = 'text' WHERE rel_no = pt.no('shop.note') AND column_name = 'qty';
DO $$ BEGIN EXECUTE format('ALTER TABLE synchro_data.r_%s ALTER c5 TYPE text', pt.no('shop.note')); END $$;
DELETE FROM synchro.registration WHERE rel_no = pt.no('shop.task') AND generation = (SELECT registry_generation FROM synchro.progress);
SELECT pt.register('shop.note', 'enabled', NULL, 'created_at', '{id,owner,title,qty,big,price,due,tags,doc,folder,created_at}') \g /dev/null
-- every field still fits: applied under the current schema
SELECT list, state FROM pt.push('ann', 'c1', pt.old(pt.m('n1', 'insert', 'shop.note', to_json(pt.id('n1')), '{"title": "old but fine"}')));
-- a field of another type, a field that is gone: the fields are told, nothing is written
SELECT list, status, code, message FROM pt.push('ann', 'c2',
  pt.old(pt.m('n2', 'insert', 'shop.note', to_json(pt.id('n2')), '{"title": "t", "qty": 1}')),
  pt.old((pt.m('n3', 'insert', 'shop.note', to_json(pt.id('n3')), '{"title": "t"}')::jsonb || jsonb_build_object('columns',
    (SELECT jsonb_build_object(slug, 's', qty, 1) FROM pt.old)))::json));
SELECT o.outcome->>'code' AS code, o.outcome->'retryable' AS retryable, o.outcome->'authored_schema' = old.schema AS authored,
       o.outcome->'current_schema' = pt.schema_ref()::jsonb AS current,
       o.outcome->'incompatible_field_ids' = (SELECT jsonb_agg(f ORDER BY f COLLATE "C") FROM unnest(ARRAY[old.qty, old.slug]) f) AS fields
  FROM (SELECT outcome::jsonb FROM synchro.push_mutation WHERE mutation_id = pt.id('n3')) o, pt.old;
-- a table that is gone: each of its fields
SELECT list, code FROM pt.push('ann', 'c3', pt.old((pt.m('n4', 'insert', 'shop.note', '1', '{}')::jsonb
  || (SELECT jsonb_build_object('table', task, 'pk', jsonb_build_object(task_id, '1')) FROM pt.old))::json));
-- the same under the current schema, which never had it
SELECT list, code FROM pt.push('ann', 'c4', (pt.m('n5', 'insert', 'shop.note', '1', '{}')::jsonb
  || (SELECT jsonb_build_object('table', task, 'pk', jsonb_build_object(task_id, '1')) FROM pt.old))::json);
-- a manifest that the server never published
SELECT list, code, message FROM pt.push('ann', 'c5', (pt.m('n6', 'insert', 'shop.note', to_json(pt.id('n6')), '{"title": "t"}')::jsonb
  || jsonb_build_object('authored_schema', jsonb_build_object('version', 1, 'hash', repeat('0', 64))))::json);
SELECT jsonb_array_length(outcome::jsonb->'incompatible_field_ids') AS fields FROM synchro.push_mutation WHERE mutation_id = pt.id('n6');
-- a field that only the current manifest has can't have been meant by an older one
SELECT list, code, message FROM pt.push('ann', 'c6', pt.old((pt.m('n7', 'insert', 'shop.note', to_json(pt.id('n7')), '{}')::jsonb
  || jsonb_build_object('columns', jsonb_build_object(pt.id('new field'), 1)))::json));
-- a field that is read-only now was writable then
SELECT pt.register('shop.note', 'read_only', NULL, 'created_at', '{id,owner,title,qty,big,price,due,tags,doc,folder,created_at}') \g /dev/null
SELECT list, code FROM pt.push('ann', 'c7', pt.old(pt.m('n8', 'insert', 'shop.note', to_json(pt.id('n8')), '{"title": "t"}')),
                                           pt.old(pt.m('n9', 'insert', 'shop.note', to_json(pt.id('n9')), '{}')));
SELECT title FROM shop.note;
