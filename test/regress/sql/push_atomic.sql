-- An atomic group is applied as a whole or not at all.
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set fixture :abs_srcdir /fixtures/push.sql
\i :fixture
\set ECHO all
CREATE FUNCTION pt.group(p_label text, VARIADIC p_mutations json[]) RETURNS TABLE (http int, list text, n text, code text, message text, state text) LANGUAGE sql VOLATILE AS $$
  SELECT s.http, s.list, s.n, s.code, s.message, s.state FROM synchro.synchro_push('ann', pt.request('client of ann', p_label, p_mutations, '{"atomic": true}')) r, LATERAL pt.show(r.status, r.body) s
$$;
SET ROLE shop_owner;
CREATE TABLE shop.partner (id int PRIMARY KEY, other int NOT NULL CONSTRAINT partner_other REFERENCES shop.partner DEFERRABLE);
GRANT ALL ON shop.partner TO synchro_writer;
GRANT SELECT ON shop.partner TO synchro_owner;
RESET ROLE;
SELECT pt.register('shop.partner', 'enabled') \g /dev/null
-- partners that need each other: alone neither is possible, as a group both are; the client's epoch advances once
SELECT list, code FROM pt.push('ann', 'a1', pt.m('m1', 'insert', 'shop.partner', '1', '{"other": 2}'), pt.m('m2', 'insert', 'shop.partner', '2', '{"other": 1}'));
SELECT * FROM pt.group('a2', pt.m('m3', 'insert', 'shop.partner', '1', '{"other": 2}'), pt.m('m4', 'insert', 'shop.partner', '2', '{"other": 1}'));
SELECT accepted_write_epoch FROM synchro.client WHERE user_id = 'ann';
-- again: the same outcome; a member in another batch is refused and leaves nothing
SELECT list, state FROM pt.group('a2', pt.m('m3', 'insert', 'shop.partner', '1', '{"other": 2}'), pt.m('m4', 'insert', 'shop.partner', '2', '{"other": 1}'));
SELECT list, code FROM pt.push('ann', 'a3', pt.m('m3', 'insert', 'shop.partner', '1', '{"other": 2}'));
SELECT count(*) FROM synchro.push_batch WHERE batch_id = pt.id('a3');
-- the failing mutation keeps its code, nothing is accepted, nothing stays
SELECT * FROM pt.group('a4', pt.m('m5', 'insert', 'shop.note', to_json(pt.id('n1')), '{}'), pt.m('m6', 'update', 'shop.partner', '1', '{"other": 1}', 'stale'),
  pt.m('m7', 'insert', 'shop.note', to_json(pt.id('n2')), '{"qty": 1}'));
SELECT * FROM pt.group('a5', pt.m('m8', 'insert', 'shop.note', to_json(pt.id('n1')), '{}'), pt.m('m9', 'insert', 'shop.note', to_json(pt.id('n2')), '{"title": null}'));
-- what no value can change fails it first, without anything being tried
SELECT list, n, code FROM pt.group('a6', pt.m('m10', 'insert', 'shop.partner', '3', '{"other": 404}'), pt.m('m11', 'insert', 'shop.price_list', '"a"', '{}'),
  pt.m('m12', 'insert', 'shop.note', to_json(pt.id('n2')), '{"nothing": 1}'));
SELECT list, n, code FROM pt.group('a7', pt.m('m13', 'insert', 'shop.note', '"no key"', '{}'), pt.m('m14', 'insert', 'shop.note', to_json(pt.id('n2')), '{}'));
-- a constraint that the group as a whole breaks
SELECT list, n, code, message FROM pt.group('a8', pt.m('m15', 'insert', 'shop.partner', '5', '{"other": 6}'), pt.m('m16', 'insert', 'shop.partner', '6', '{"other": 7}'));
SELECT id FROM shop.partner ORDER BY id;
SELECT count(*) FROM shop.note;
SELECT count(*) FROM synchro.push_fence WHERE key NOT IN ('1', '2');
SELECT accepted_write_epoch FROM synchro.client WHERE user_id = 'ann';
-- a row twice, a mutation twice or one that is completed elsewhere
SELECT http, code FROM pt.group('a9', pt.m('m17', 'insert', 'shop.note', to_json(pt.id('n1')), '{}'), pt.m('m18', 'delete', 'shop.note', to_json(pt.id('n1')), NULL, 'x'));
SELECT http, code FROM pt.group('a10', pt.m('m17', 'insert', 'shop.note', to_json(pt.id('n1')), '{}'), pt.m('m17', 'insert', 'shop.note', to_json(pt.id('n2')), '{}'));
SELECT list, code FROM pt.push('ann', 'a11', pt.m('m19', 'insert', 'shop.note', to_json(pt.id('n1')), '{}'));
SELECT http, code FROM pt.group('a12', pt.m('m20', 'insert', 'shop.note', to_json(pt.id('n2')), '{}'), pt.m('m19', 'insert', 'shop.note', to_json(pt.id('n1')), '{}'));
-- members see each other: delete a parent after its child, update what another made
SELECT list, code, state FROM pt.group('a13', pt.m('m21', 'insert', 'shop.note', to_json(pt.id('n3')), '{"folder": 1}'), pt.m('m22', 'insert', 'shop.folder', '1', '{"owner": "ann"}'));
-- the same batch without "atomic" is another batch
SELECT list, code FROM pt.push('ann', 'a13', pt.m('m21', 'insert', 'shop.note', to_json(pt.id('n3')), '{"folder": 1}'), pt.m('m22', 'insert', 'shop.folder', '1', '{"owner": "ann"}'));
