-- What becomes of a mutation, by the state of its row.
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set fixture :abs_srcdir /fixtures/push.sql
\i :fixture
\set ECHO all
-- all three operations; outcomes partition the batch in request order
SELECT * FROM pt.push('ann', 'b1',
  pt.m('m1', 'insert', 'shop.note', to_json(pt.id('n1')), '{"title": "first"}'),
  pt.m('m2', 'update', 'shop.note', to_json(pt.id('n9')), '{"title": "no such row"}'),
  pt.m('m3', 'insert', 'shop.note', to_json(pt.id('n2')), '{"title": "second"}'));
SELECT * FROM pt.push('ann', 'b2',
  pt.m('m4', 'update', 'shop.note', to_json(pt.id('n1')), '{"title": "first again"}'),
  pt.m('m5', 'delete', 'shop.note', to_json(pt.id('n2'))));
SELECT id = pt.id('n1') AS n1, owner, title FROM shop.note;
-- a stale base: conflict with the current row, which stays
SELECT * FROM pt.push('ann', 'b3', pt.m('m6', 'update', 'shop.note', to_json(pt.id('n1')), '{"title": "lost"}', 'stale'),
                                   pt.m('m7', 'delete', 'shop.note', to_json(pt.id('n1')), NULL, 'stale'));
-- an existing key: conflict
SELECT * FROM pt.push('ann', 'b4', pt.m('m8', 'insert', 'shop.note', to_json(pt.id('n1')), '{"title": "again"}'));
-- a deleted row stays deleted, for every operation, with the version of its deletion
SELECT server_version AS tombstone FROM synchro.tombstone WHERE key = pt.id('n2')::text \gset
SELECT list, code, state FROM pt.push('ann', 'b5',
  pt.m('m9', 'insert', 'shop.note', to_json(pt.id('n2')), '{"title": "back"}'),
  pt.m('m10', 'update', 'shop.note', to_json(pt.id('n2')), '{"title": "back"}'),
  pt.m('m11', 'delete', 'shop.note', to_json(pt.id('n2'))));
SELECT DISTINCT outcome::json->>'server_version' = :'tombstone' AS version_kept FROM synchro.push_mutation
 WHERE mutation_id IN (pt.id('m9'), pt.id('m10'), pt.id('m11'));
SELECT count(*) FROM shop.note WHERE id = pt.id('n2');
-- a row that was never there
SELECT * FROM pt.push('ann', 'b6', pt.m('m12', 'delete', 'shop.note', to_json(pt.id('n3'))));
-- delete, create again, delete: the row ends deleted
SELECT list, code FROM pt.push('ann', 'b7',
  pt.m('m13', 'delete', 'shop.note', to_json(pt.id('n1'))),
  pt.m('m14', 'insert', 'shop.note', to_json(pt.id('n1')), '{}'),
  pt.m('m15', 'delete', 'shop.note', to_json(pt.id('n1'))));
SELECT count(*) FROM shop.note;
-- an identity that the application deleted and inserted again directly is live
INSERT INTO shop.note (id, owner, title) VALUES (pt.id('n2'), 'ann', 'direct');
CALL pt.materialize('shop.note');
SELECT * FROM pt.push('ann', 'b8', pt.m('m16', 'update', 'shop.note', to_json(pt.id('n2')), '{"title": "live"}'),
                                   pt.m('m17', 'insert', 'shop.note', to_json(pt.id('n2')), '{}'));
-- what is absent is not null, what is null is not absent; the key is never written
INSERT INTO shop.note (id, owner, title, qty) VALUES (pt.id('n4'), 'ann', 'keep', 4);
CALL pt.materialize('shop.note');
SELECT list, state FROM pt.push('ann', 'b9', pt.m('m18', 'update', 'shop.note', to_json(pt.id('n4')), '{"big": "5"}'));
SELECT list, state FROM pt.push('ann', 'b10', pt.m('m19', 'update', 'shop.note', to_json(pt.id('n4')), '{"qty": null}'));
-- an insert without columns takes the defaults
SELECT list, state FROM pt.push('ann', 'b11', pt.m('m20', 'insert', 'shop.note', to_json(pt.id('n5')), '{}'));
-- the client's clock decides nothing
SELECT list, state FROM pt.push('ann', 'b12', (pt.m('m21', 'update', 'shop.note', to_json(pt.id('n5')), '{"title": "old clock"}')::jsonb
  || '{"client_version": "1999-01-01T00:00:00.000000Z"}')::json);
-- every outcome names the schema it was decided under, and an accepted batch counts once for the client
SELECT DISTINCT outcome::jsonb->'outcome_schema' = pt.schema_ref()::jsonb AS current FROM synchro.push_mutation;
SELECT accepted_write_epoch FROM synchro.client WHERE user_id = 'ann';
