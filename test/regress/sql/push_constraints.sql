-- Constraints of the application fail the mutation that breaks them, by name; operational errors fail the batch.
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set fixture :abs_srcdir /fixtures/push.sql
\i :fixture
\set ECHO all
SET ROLE shop_owner;
CREATE TABLE shop.room (id int PRIMARY KEY, during int4range,
  next int CONSTRAINT room_next REFERENCES shop.room DEFERRABLE INITIALLY DEFERRED, must text NOT NULL DEFAULT '', raise text,
  CONSTRAINT room_free EXCLUDE USING gist (during WITH &&));
GRANT ALL ON shop.room TO synchro_writer;
GRANT SELECT ON shop.room TO synchro_owner;
CREATE FUNCTION shop.raise() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.raise IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = NEW.raise, MESSAGE = 'secret value ' || NEW.id, CONSTRAINT = NEW.must;
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER raise BEFORE INSERT ON shop.room FOR EACH ROW EXECUTE FUNCTION shop.raise();
RESET ROLE;
SELECT pt.register('shop.room', 'enabled', NULL, NULL, NULL, '{during}') \g /dev/null
CREATE FUNCTION pt.room(p_label text, p_id int, p_columns json) RETURNS json LANGUAGE sql AS
  $$SELECT pt.m(p_label, 'insert', 'shop.room', to_json(p_id), p_columns)$$;
-- each kind of constraint, and the neighbours that were fine
SELECT list, n, code, message FROM pt.push('ann', 'b1',
  pt.m('m1', 'insert', 'shop.note', to_json(pt.id('n1')), '{"slug": "a"}'),
  pt.m('m2', 'insert', 'shop.note', to_json(pt.id('n2')), '{"slug": "a"}'),
  pt.m('m3', 'insert', 'shop.note', to_json(pt.id('n3')), '{"title": "this title is far too long"}'),
  pt.m('m4', 'insert', 'shop.note', to_json(pt.id('n4')), '{"title": null}'),
  pt.m('m5', 'insert', 'shop.note', to_json(pt.id('n5')), '{"folder": 404}'),
  pt.m('m6', 'insert', 'shop.note', to_json(pt.id('n6')), '{"slug": "b"}'),
  pt.room('m7', 1, '{"during": "[1,5)"}'), pt.room('m8', 2, '{"during": "[4,9)"}'));
SELECT slug FROM shop.note ORDER BY slug;
-- nothing of a failed mutation stays: no fence, no version
SELECT count(*) FROM synchro.push_fence WHERE key IN (pt.id('n2')::text, pt.id('n3')::text, pt.id('n4')::text, pt.id('n5')::text);
-- a deferred constraint is settled at the end of its mutation: the second fails alone, a row that refers to itself is fine
SELECT list, n, code, message FROM pt.push('ann', 'b2', pt.room('m10', 10, '{"next": 10}'), pt.room('m11', 11, '{"next": 12}'),
  pt.room('m12', 12, '{"next": 10}'));
-- child before parent in one batch: each mutation must hold by itself
SELECT list, n, code, message FROM pt.push('ann', 'b3',
  pt.m('m13', 'insert', 'shop.note', to_json(pt.id('n7')), '{"folder": 7}'),
  pt.m('m14', 'insert', 'shop.folder', '7', '{"owner": "ann"}'),
  pt.m('m15', 'insert', 'shop.note', to_json(pt.id('n8')), '{"folder": 7}'));
-- what functions of the application raise: their own errors and check violations are about the mutation; messages carry no text of theirs
SELECT list, n, code, message FROM pt.push('ann', 'b4', pt.room('m20', 20, '{"raise": "P0001"}'), pt.room('m21', 21, '{"raise": "APP01"}'),
  pt.room('m22', 22, '{"raise": "SY005"}'), pt.room('m23', 23, '{"raise": "42501"}'), pt.room('m24', 24, '{"raise": "22012"}'),
  pt.room('m25', 25, json_build_object('raise', '23514', 'must', repeat('x', 100))), pt.room('m26', 26, '{"raise": "54000"}'));
-- an operational error undoes the whole batch, its ledger entry included
\set VERBOSITY sqlstate
SELECT * FROM pt.push('ann', 'b5', pt.room('m30', 30, '{}'), pt.room('m31', 31, '{"raise": "40001"}'));
SELECT * FROM pt.push('ann', 'b5', pt.room('m30', 30, '{}'), pt.room('m31', 31, '{"raise": "40P01"}'));
SELECT * FROM pt.push('ann', 'b5', pt.room('m30', 30, '{}'), pt.room('m31', 31, '{"raise": "55P03"}'));
SELECT * FROM pt.push('ann', 'b5', pt.room('m30', 30, '{}'), pt.room('m31', 31, '{"raise": "57014"}'));
SELECT * FROM pt.push('ann', 'b5', pt.room('m30', 30, '{}'), pt.room('m31', 31, '{"raise": "53200"}'));
SELECT * FROM pt.push('ann', 'b5', pt.room('m30', 30, '{}'), pt.room('m31', 31, '{"raise": "08006"}'));
-- and so does what says nothing about the mutation
SELECT * FROM pt.push('ann', 'b5', pt.room('m30', 30, '{}'), pt.room('m31', 31, '{"raise": "XX000"}'));
SELECT * FROM pt.push('ann', 'b5', pt.room('m30', 30, '{}'), pt.room('m31', 31, '{"raise": "42P01"}'));
\set VERBOSITY default
SELECT count(*) FROM shop.room WHERE id >= 30;
SELECT count(*) FROM synchro.push_batch WHERE batch_id = pt.id('b5');
-- sent again, it runs once
SELECT list, n, code FROM pt.push('ann', 'b5', pt.room('m30', 30, '{}'), pt.room('m31', 31, '{}'));
