-- An update that one statement compares and writes: the outcome is what stands in the end, whatever else hangs on the table.
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set fixture :abs_srcdir /fixtures/push.sql
\i :fixture
\set ECHO all
CREATE FUNCTION pt.task(p_label text, p_id int, p_title text, p_base text DEFAULT NULL) RETURNS json LANGUAGE sql AS
  $$SELECT pt.m(p_label, 'update', 'shop.task', to_json(p_id::text), json_build_object('title', p_title), p_base)$$;
SELECT list, code, state FROM pt.push('ann', 'b0', pt.m('a1', 'insert', 'shop.task', '"1"', '{"title": "one"}'),
  pt.m('a2', 'insert', 'shop.task', '"2"', '{"title": "two"}'), pt.m('a3', 'insert', 'shop.note', to_json(pt.id('n1')), '{"title": "note"}'));
-- nothing but our triggers: it is told as it was written, and the next one builds on it; twice in a batch, the second is too late
SELECT list, code, state FROM pt.push('ann', 'b1', pt.task('m1', 1, 'first'));
SELECT list, code, state FROM pt.push('ann', 'b2', pt.task('m2', 1, 'second'), pt.task('m3', 1, 'third'));
-- not a row that was deleted softly, though its version is right
SELECT list, code FROM pt.push('ann', 'b3', pt.m('m4', 'delete', 'shop.task', '"2"'));
SELECT list, code FROM pt.push('ann', 'b4', pt.task('m5', 2, 'late'), pt.m('m6', 'delete', 'shop.task', '"2"'));
-- what its constraints undo at its end leaves no fence, and the row its version
SELECT count(*) AS before FROM synchro.push_fence \gset
SELECT list, code, message FROM pt.push('ann', 'b5', pt.m('m7', 'update', 'shop.note', to_json(pt.id('n1')), '{"folder": 404}'),
  pt.m('m8', 'update', 'shop.note', to_json(pt.id('n1')), '{"qty": 1}'));
SELECT count(*) - :before AS fences FROM synchro.push_fence;
-- a trigger that writes the row again: its last state and version
SET ROLE shop_owner;
CREATE FUNCTION shop.again() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.title = 'again' THEN UPDATE shop.task SET title = 'and again' WHERE id = NEW.id;
  ELSIF NEW.title = 'hide' THEN INSERT INTO shop.log (line) VALUES ('hidden');
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER again AFTER UPDATE ON shop.task FOR EACH ROW EXECUTE FUNCTION shop.again();
RESET ROLE;
SELECT list, code, state FROM pt.push('ann', 'b6', pt.task('m9', 1, 'again'));
SELECT list, code, state FROM pt.push('ann', 'b7', pt.task('m10', 1, 'after that'));
-- a trigger that takes the row out of its writer's sight
SET ROLE shop_owner;
CREATE POLICY sight ON shop.task AS RESTRICTIVE FOR SELECT TO synchro_writer USING (NOT EXISTS (SELECT FROM shop.log WHERE line = 'hidden'));
RESET ROLE;
SELECT list, code, message FROM pt.push('ann', 'b8', pt.task('m11', 1, 'hide'));
SELECT title FROM shop.task WHERE id = 1;
-- a rule that writes something else
SET ROLE shop_owner;
DROP TRIGGER again ON shop.task;
CREATE RULE elsewhere AS ON UPDATE TO shop.task DO ALSO INSERT INTO shop.log (line) VALUES ('ruled');
RESET ROLE;
SELECT list, code, state FROM pt.push('ann', 'b9', pt.task('m12', 1, 'ruled'));
SELECT line FROM shop.log;
