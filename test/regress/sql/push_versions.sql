-- The version of a row: the projection's, that of a push not yet materialized, or the one that a marker brings.
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set fixture :abs_srcdir /fixtures/push.sql
\i :fixture
\set ECHO all
CREATE FUNCTION pt.seen(p_lsn pg_lsn) RETURNS void LANGUAGE sql AS 'UPDATE synchro.progress SET seen_lsn = p_lsn';
CREATE FUNCTION pt.set(p_label text, p_key text, p_columns json, p_base text) RETURNS TABLE (list text, code text, state text) LANGUAGE sql VOLATILE AS $$
  SELECT p.list, p.code, p.state FROM pt.push('ann', p_label, pt.m(p_label, 'update', 'shop.note', to_json(pt.id(p_key)), p_columns, p_base)) p
$$;
INSERT INTO shop.note (id, owner, title) SELECT pt.id('n' || i), 'ann', 'v1' FROM generate_series(1, 5) i;
CALL pt.materialize('shop.note');
SELECT pt.version('shop.note', pt.id('n1')::text) AS v1 \gset
-- materialized: the projection's version counts; the next push needs no worker
SELECT * FROM pt.set('m1', 'n1', '{"title": "v2"}', :'v1');
SELECT * FROM pt.set('m2', 'n1', '{"title": "v3"}', :'v1');
SELECT * FROM pt.set('m3', 'n1', '{"title": "v3"}', pt.version('shop.note', pt.id('n1')::text));
SELECT count(*) FROM synchro.push_fence WHERE key = pt.id('n1')::text;
-- a direct write that is still on its way: a marker goes into the WAL, and if the worker does not pass it in time nothing is decided
-- (rows of an insert that exist already count too)
UPDATE shop.note SET title = 'direct' WHERE id = pt.id('n2');
INSERT INTO shop.note (id, owner, title) VALUES (pt.id('n6'), 'ann', 'direct');
SELECT list, code FROM pt.push('ann', 'm4', pt.m('m4', 'insert', 'shop.note', to_json(pt.id('n6')), '{}'));
SELECT count(*) FROM synchro.push_batch WHERE batch_id = pt.id('m4');
-- once it passes, the versions are the new ones
CALL pt.materialize('shop.note');
SELECT list, code, state FROM pt.push('ann', 'm4', pt.m('m4', 'insert', 'shop.note', to_json(pt.id('n6')), '{}'),
  pt.m('m4.2', 'update', 'shop.note', to_json(pt.id('n2')), '{"title": "v2"}', :'v1'));
-- a table rewrite changes xmin and no version: after a marker the projection is right
CREATE TABLE pt.base AS SELECT pt.version('shop.note', pt.id('n3')::text) AS v;
ALTER TABLE shop.note ALTER COLUMN big TYPE numeric USING big::numeric;
ALTER TABLE shop.note ALTER COLUMN big TYPE bigint USING big::bigint;
SELECT pt.seen('FFFFFFFF/0');
SELECT * FROM pt.set('m5', 'n3', '{"title": "after rewrite"}', (SELECT v FROM pt.base));
-- so do VACUUM FULL and CLUSTER; freezing keeps the raw xmin
VACUUM FULL shop.note;
SELECT * FROM pt.set('m6', 'n4', '{"title": "after vacuum full"}', (SELECT v FROM pt.base));
CALL pt.materialize('shop.note');
VACUUM FREEZE shop.note;
SELECT pt.seen('0/0');
SELECT * FROM pt.set('m7', 'n4', '{"title": "after freeze"}', pt.version('shop.note', pt.id('n4')::text));
SELECT pt.seen('FFFFFFFF/0');
INSERT INTO shop.note (id, owner, title) VALUES (pt.id('n8'), 'ann', 'direct');
-- a row that is in no projection although everything is materialized: capture is broken, nothing is guessed
SELECT list, code FROM pt.push('ann', 'm8', pt.m('m8', 'insert', 'shop.note', to_json(pt.id('n8')), '{}'));
CALL pt.materialize('shop.note');
SELECT list, code, state FROM pt.push('ann', 'm8', pt.m('m8', 'insert', 'shop.note', to_json(pt.id('n8')), '{}'));
-- a write that leaves no fence
ALTER TABLE shop.note DISABLE TRIGGER synchro_fence;
SELECT list, code FROM pt.push('ann', 'm9', pt.m('m9', 'insert', 'shop.note', to_json(pt.id('n7')), '{}'));
ALTER TABLE shop.note ENABLE ALWAYS TRIGGER synchro_fence;
SELECT count(*) FROM shop.note WHERE id = pt.id('n7');
