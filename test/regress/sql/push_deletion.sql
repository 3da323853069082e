-- Relations with a deletion column keep deleted rows as tombstones with content.
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set fixture :abs_srcdir /fixtures/push.sql
\i :fixture
\set ECHO all
SELECT list, code, state FROM pt.push('ann', 'b1', pt.m('m1', 'insert', 'shop.task', '"9007199254740993"', '{"title": "t"}'), pt.m('m2', 'insert', 'shop.task', '"2"', '{}'));
SELECT list, code, state ~ 'checked .*title="t" deleted_at="' AS tombstone FROM pt.push('ann', 'b2', pt.m('m3', 'delete', 'shop.task', '"9007199254740993"'));
SELECT id, deleted_at = (SELECT created_at FROM synchro.push_batch WHERE batch_id = pt.id('b2')) AS at_the_push FROM shop.task WHERE deleted_at IS NOT NULL;
SELECT count(*) FROM synchro.tombstone;
-- it is deleted for everybody who writes it, and is shown with its content
SELECT list, status, code, state ~ 'version checked owner="ann" title="t" deleted_at=' AS shown FROM pt.push('ann', 'b3',
  pt.m('m4', 'update', 'shop.task', '"9007199254740993"', '{"title": "u"}'), pt.m('m5', 'delete', 'shop.task', '"9007199254740993"'),
  pt.m('m6', 'insert', 'shop.task', '"9007199254740993"', '{}'));
-- a stale delete is a conflict, the row is live
SELECT list, code, state FROM pt.push('ann', 'b4', pt.m('m7', 'delete', 'shop.task', '"2"', NULL, 'stale'));
-- a row that the application really deletes
DELETE FROM shop.task WHERE id = 2;
SELECT list, code, state FROM pt.push('ann', 'b5', pt.m('m8', 'insert', 'shop.task', '"2"', '{}'), pt.m('m9', 'delete', 'shop.task', '"2"', NULL, 'x'));
-- a trigger that takes the deletion back
SET ROLE shop_owner;
CREATE FUNCTION shop.undelete() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.deleted_at := NULL; RETURN NEW; END';
CREATE TRIGGER undelete BEFORE UPDATE ON shop.task FOR EACH ROW EXECUTE FUNCTION shop.undelete();
RESET ROLE;
SELECT list, code FROM pt.push('ann', 'b6', pt.m('m10', 'insert', 'shop.task', '"3"', '{}'));
SELECT list, code, message FROM pt.push('ann', 'b7', pt.m('m11', 'delete', 'shop.task', '"3"'));
-- other types of deletion column
SET ROLE shop_owner;
CREATE TABLE shop.a (id text PRIMARY KEY, gone timestamp);
CREATE TABLE shop.b (id inet PRIMARY KEY, gone date);
CREATE TABLE shop.c (id smallint PRIMARY KEY, gone boolean);
GRANT ALL ON shop.a, shop.b, shop.c TO synchro_writer;
GRANT SELECT ON shop.a, shop.b, shop.c TO synchro_owner;
RESET ROLE;
SELECT pt.register('shop.a', 'enabled', 'gone'), pt.register('shop.b', 'enabled', 'gone'), pt.register('shop.c', 'enabled', 'gone') \g /dev/null
SET timezone = 'America/New_York';
SELECT list, code FROM pt.push('ann', 'c1', pt.m('n1', 'insert', 'shop.a', '"é \" key"', '{}'), pt.m('n2', 'insert', 'shop.b', '"10.0.0.0/8"', '{}'), pt.m('n3', 'insert', 'shop.c', '-3', '{}'));
SELECT list, code FROM pt.push('ann', 'c2', pt.m('n4', 'delete', 'shop.a', '"é \" key"'), pt.m('n5', 'delete', 'shop.b', '"10.0.0.0/8"'));
SELECT a.id, a.gone = now.utc AS utc, b.id, b.gone = now.utc::date AS utc FROM shop.a, shop.b,
  (SELECT created_at AT TIME ZONE 'UTC' AS utc FROM synchro.push_batch WHERE batch_id = pt.id('c2')) now;
\set VERBOSITY terse
SELECT list, code FROM pt.push('ann', 'c3', pt.m('n6', 'delete', 'shop.c', '-3'));
SELECT synchro._resolve_sync_columns('shop.c'::regclass, 'id', '{}', '{}', '{}', '{}', 'gone');
