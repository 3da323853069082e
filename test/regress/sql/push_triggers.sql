-- Triggers of the application run as in any write; the outcome tells the row as they left it.
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set fixture :abs_srcdir /fixtures/push.sql
\i :fixture
\set ECHO all
SET ROLE shop_owner;
CREATE FUNCTION shop.trig() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  CASE NEW.title
    WHEN 'upper' THEN NEW.title := 'UPPER';
    WHEN 'suppress' THEN RETURN NULL;
    WHEN 'move' THEN NEW.id := '00000000-0000-4000-8000-000000000000';
    ELSE NULL;
  END CASE;
  RETURN NEW;
END $$;
CREATE TRIGGER a_before BEFORE INSERT OR UPDATE ON shop.note FOR EACH ROW EXECUTE FUNCTION shop.trig();
-- unqualified: found through the search_path of the session, as in a direct write
CREATE FUNCTION shop.after() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.title = 'twice' THEN UPDATE shop.note SET qty = coalesce(qty, 0) + 1, title = 'two' WHERE id = NEW.id;
  ELSIF NEW.title = 'remove' THEN DELETE FROM shop.note WHERE id = NEW.id;
  ELSIF NEW.title = 'other' THEN UPDATE shop.note SET qty = 99 WHERE id <> NEW.id;
  ELSIF NEW.title = 'path' THEN INSERT INTO log (line) VALUES (current_user || ' ' || current_setting('search_path'));
  ELSIF NEW.title = 'become bob' THEN
    PERFORM set_config('synchro.user_id', 'bob', false);
    INSERT INTO shop.log (line) VALUES (current_setting('synchro.user_id') || ' ' || synchro.synchro_subject());
  ELSIF NEW.title = 'who' THEN INSERT INTO shop.log (line) VALUES (current_setting('synchro.user_id'));
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER z_after AFTER INSERT OR UPDATE ON shop.note FOR EACH ROW EXECUTE FUNCTION shop.after();
RESET ROLE;
CREATE FUNCTION pt.note(p_label text, p_title text) RETURNS json LANGUAGE sql AS
  $$SELECT pt.m(p_label || p_title, 'insert', 'shop.note', to_json(pt.id(p_label)), json_build_object('title', p_title))$$;
-- a row that a BEFORE trigger changes, and the client's next update of it
SELECT list, code, state FROM pt.push('ann', 'b1', pt.note('n1', 'upper'));
SELECT list, code, state FROM pt.push('ann', 'b2', pt.m('m2', 'update', 'shop.note', to_json(pt.id('n1')), '{"qty": 1}'));
-- a row that an AFTER trigger writes again: one outcome, the last version
SELECT list, code, state FROM pt.push('ann', 'b3', pt.note('n2', 'twice'));
SELECT count(*) AS fences, count(DISTINCT server_version) AS versions FROM synchro.push_fence WHERE key = pt.id('n2')::text;
SELECT list, code, state FROM pt.push('ann', 'b4', pt.m('m4', 'update', 'shop.note', to_json(pt.id('n2')), '{"qty": 7}'));
-- a write that a trigger suppresses or takes back
SELECT list, code, message FROM pt.push('ann', 'b5', pt.note('n3', 'suppress'), pt.note('n4', 'remove'), pt.note('n4.2', 'move'),
  pt.m('m5', 'update', 'shop.note', to_json(pt.id('n1')), '{"title": "suppress"}'));
-- a trigger of the first mutation changes the row of the second: its base is stale
SELECT list, code, state FROM pt.push('ann', 'b6', pt.note('n5', 'other'), pt.m('m6', 'update', 'shop.note', to_json(pt.id('n1')), '{"slug": "s"}'));
-- triggers run as synchro_writer, under the search_path that the session began with
ALTER ROLE postgres IN DATABASE push_test SET search_path = shop;
\c
SET client_min_messages = warning;
SET jit = off;
SELECT list, code FROM pt.push('ann', 'b8', pt.note('n6', 'path'));
ALTER ROLE postgres IN DATABASE push_test RESET search_path;
-- what one mutation sets, the next does not see
SELECT list, code FROM pt.push('ann', 'b9', pt.note('n7', 'become bob'), pt.note('n8', 'who'));
SELECT line FROM shop.log ORDER BY at;
-- the row of a delete that a trigger suppresses, or puts back
SET ROLE shop_owner;
CREATE FUNCTION shop.keep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.title = 'other' THEN RETURN NULL; END IF;
  IF TG_WHEN = 'AFTER' AND OLD.title = 'who' THEN INSERT INTO shop.note (id, owner) VALUES (OLD.id, OLD.owner); END IF;
  RETURN OLD;
END $$;
CREATE TRIGGER keep BEFORE DELETE ON shop.note FOR EACH ROW EXECUTE FUNCTION shop.keep();
CREATE TRIGGER keep_after AFTER DELETE ON shop.note FOR EACH ROW EXECUTE FUNCTION shop.keep();
RESET ROLE;
SELECT list, code, message FROM pt.push('ann', 'b10', pt.m('m10', 'delete', 'shop.note', to_json(pt.id('n5'))),
  pt.m('m11', 'delete', 'shop.note', to_json(pt.id('n8'))), pt.m('m12', 'delete', 'shop.note', to_json(pt.id('n1'))));
SELECT title FROM shop.note ORDER BY title COLLATE "C";
