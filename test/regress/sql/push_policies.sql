-- Row-level security and grants of synchro_writer decide; hidden rows are never revealed.
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set fixture :abs_srcdir /fixtures/push.sql
\i :fixture
\set ECHO all
INSERT INTO shop.note (id, owner, title) VALUES (pt.id('mine'), 'ann', 'mine'), (pt.id('bobs'), 'bob', 'hidden'), (pt.id('public'), 'public', 'shown');
INSERT INTO shop.note (id, owner, title) VALUES (pt.id('gone'), 'bob', 'hidden, deleted once');
DELETE FROM shop.note WHERE id = pt.id('gone');
INSERT INTO shop.note (id, owner, title) VALUES (pt.id('gone'), 'bob', 'hidden again');
CALL pt.materialize('shop.note');
-- a row of somebody else: not found, whatever happened to it, and its key is taken
SELECT * FROM pt.push('ann', 'b1',
  pt.m('m1', 'update', 'shop.note', to_json(pt.id('bobs')), '{"title": "x"}'),
  pt.m('m2', 'delete', 'shop.note', to_json(pt.id('bobs'))),
  pt.m('m3', 'insert', 'shop.note', to_json(pt.id('bobs')), '{"title": "x"}'),
  pt.m('m4', 'update', 'shop.note', to_json(pt.id('gone')), '{"title": "x"}'),
  pt.m('m5', 'insert', 'shop.note', to_json(pt.id('gone')), '{"title": "x"}'));
-- a row that may be seen but not written
SELECT * FROM pt.push('ann', 'b2',
  pt.m('m6', 'update', 'shop.note', to_json(pt.id('public')), '{"title": "x"}'),
  pt.m('m7', 'delete', 'shop.note', to_json(pt.id('public'))),
  pt.m('m8', 'insert', 'shop.note', to_json(pt.id('public')), '{"title": "x"}'));
-- WITH CHECK: giving a row away, or making one for somebody else
SELECT * FROM pt.push('ann', 'b3',
  pt.m('m9', 'update', 'shop.note', to_json(pt.id('mine')), '{"owner": "bob"}'),
  pt.m('m10', 'insert', 'shop.note', to_json(pt.id('n1')), '{"owner": "bob"}'));
-- bob may do to his what ann may not
SELECT list, code FROM pt.push('bob', 'b4', pt.m('m11', 'update', 'shop.note', to_json(pt.id('bobs')), '{"title": "y"}'),
                                           pt.m('m12', 'delete', 'shop.note', to_json(pt.id('gone'))));
-- a row that its own writer would not see is not accepted, since the outcome would have to show it
SET ROLE shop_owner;
CREATE POLICY drop_box ON shop.note FOR INSERT TO synchro_writer WITH CHECK (owner = 'box');
RESET ROLE;
SELECT * FROM pt.push('ann', 'b5', pt.m('m13', 'insert', 'shop.note', to_json(pt.id('n2')), '{"owner": "box"}'));
-- a policy that lets rows be changed but not deleted
SET ROLE shop_owner;
DROP POLICY own ON shop.note;
CREATE POLICY see ON shop.note FOR SELECT TO synchro_writer USING (owner = (SELECT synchro.synchro_subject()));
CREATE POLICY change ON shop.note FOR UPDATE TO synchro_writer USING (owner = (SELECT synchro.synchro_subject()));
RESET ROLE;
SELECT list, code, message FROM pt.push('ann', 'b6', pt.m('m14', 'update', 'shop.note', to_json(pt.id('mine')), '{"title": "changed"}'));
SELECT list, code, message FROM pt.push('ann', 'b7', pt.m('m15', 'delete', 'shop.note', to_json(pt.id('mine'))));
SELECT list, code, message FROM pt.push('ann', 'b8', pt.m('m16', 'insert', 'shop.note', to_json(pt.id('n3')), '{}'));
-- a grant that is gone
REVOKE UPDATE ON shop.note FROM synchro_writer;
SELECT list, code, message FROM pt.push('ann', 'b9', pt.m('m17', 'update', 'shop.note', to_json(pt.id('mine')), '{"title": "again"}'));
-- policies see the user of the credential as a setting too
SET ROLE shop_owner;
GRANT UPDATE ON shop.note TO synchro_writer;
CREATE POLICY setting ON shop.note TO synchro_writer USING (owner = current_setting('synchro.user_id'));
RESET ROLE;
SELECT list, code, message FROM pt.push('ann', 'b10', pt.m('m18', 'insert', 'shop.note', to_json(pt.id('n4')), '{}'));
-- nothing of the push outlives it
SELECT current_setting('synchro.user_id') AS user_id, synchro.synchro_subject(), current_user;
SELECT title FROM shop.note ORDER BY title COLLATE "C";
-- a policy function that fails for one row fails the mutations of that row, with whatever error
SET ROLE shop_owner;
DROP POLICY see ON shop.note;
DROP POLICY setting ON shop.note;
CREATE FUNCTION shop.may(p_title text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF p_title = 'changed' THEN RAISE EXCEPTION USING ERRCODE = 'SY005'; END IF;
  RETURN true;
END $$;
CREATE POLICY may ON shop.note TO synchro_writer USING (shop.may(title));
RESET ROLE;
SELECT list, code, message FROM pt.push('ann', 'b11', pt.m('m19', 'update', 'shop.note', to_json(pt.id('mine')), '{"title": "z"}'),
  pt.m('m20', 'update', 'shop.note', to_json(pt.id('public')), '{"title": "z"}'), pt.m('m21', 'insert', 'shop.note', to_json(pt.id('mine')), '{}'));
-- claims of the credential
SET ROLE shop_owner;
DROP POLICY may ON shop.note;
CREATE POLICY admin ON shop.note TO synchro_writer USING ((SELECT synchro.synchro_subject('roles')) ? 'admin');
RESET ROLE;
SELECT s.list, s.code FROM synchro.synchro_push('ann', pt.request('client of ann', 'b12', ARRAY[pt.m('m22', 'update', 'shop.note', to_json(pt.id('bobs')), '{"title": "by ann"}')]),
  '{"roles": ["user", "admin"]}') r, LATERAL pt.show(r.status, r.body) s;
SELECT s.list, s.code FROM synchro.synchro_push('ann', pt.request('client of ann', 'b13', ARRAY[pt.m('m23', 'update', 'shop.note', to_json(pt.id('bobs')), '{"title": "by ann"}')]),
  '{"roles": ["user"]}') r, LATERAL pt.show(r.status, r.body) s;
