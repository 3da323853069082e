-- Whatever triggers of the application do: sorted by ordinal, the fences of a row follow its changes.
\getenv inputs PG_ABS_SRCDIR
\set fixture :inputs '/fixtures/fences.sql'
\set ECHO none
\i :fixture
\set ECHO all
CREATE TABLE fences.t (id int PRIMARY KEY, n int NOT NULL DEFAULT 0, note text);
SELECT fences.track('fences.t');

-- An AFTER trigger that runs before the fence trigger and changes the row again.
CREATE FUNCTION fences.again() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE fences.t SET n = NEW.n + 1 WHERE id = NEW.id AND n < 3;
  RETURN NULL;
END
$$;
CREATE TRIGGER a_again AFTER INSERT OR UPDATE ON fences.t FOR EACH ROW EXECUTE FUNCTION fences.again();
INSERT INTO fences.t VALUES (1), (2);
SELECT * FROM fences.story();
DROP TRIGGER a_again ON fences.t;
-- One that runs after it.
CREATE TRIGGER z_again AFTER INSERT OR UPDATE ON fences.t FOR EACH ROW EXECUTE FUNCTION fences.again();
INSERT INTO fences.t VALUES (3), (4);
SELECT * FROM fences.story();
DROP TRIGGER z_again ON fences.t;

-- One row's trigger changes and deletes the others of the same statement.
CREATE FUNCTION fences.others() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.note = 'first' THEN
    UPDATE fences.t SET note = 'touched' WHERE id > NEW.id;
    DELETE FROM fences.t WHERE id = NEW.id + 2;
    INSERT INTO fences.t VALUES (NEW.id + 2, 0, 'born again');
  END IF;
  RETURN NULL;
END
$$;
CREATE TRIGGER others AFTER INSERT ON fences.t FOR EACH ROW EXECUTE FUNCTION fences.others();
INSERT INTO fences.t VALUES (11, 0, 'first'), (12, 0, 'x'), (13, 0, 'x');
SELECT * FROM fences.story();
DROP TRIGGER others ON fences.t;

-- A BEFORE INSERT trigger that replaces an existing row: its DELETE is a later command than the INSERT it makes room for.
CREATE FUNCTION fences.replace() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM fences.t WHERE id = NEW.id;
  RETURN NEW;
END
$$;
CREATE TRIGGER replace BEFORE INSERT ON fences.t FOR EACH ROW EXECUTE FUNCTION fences.replace();
INSERT INTO fences.t VALUES (1, 0, 'replaced'), (5, 0, 'new');
BEGIN;
UPDATE fences.t SET n = 7 WHERE id = 1;
INSERT INTO fences.t VALUES (1, 0, 'replaced'), (2, 0, 'replaced');
UPDATE fences.t SET n = 8 WHERE id = 1;
INSERT INTO fences.t VALUES (1, 0, 'replaced');
DELETE FROM fences.t WHERE id = 2;
COMMIT;
SELECT * FROM fences.story();
-- The same, while an earlier AFTER trigger changes what was inserted.
CREATE TRIGGER a_again AFTER INSERT OR UPDATE ON fences.t FOR EACH ROW EXECUTE FUNCTION fences.again();
INSERT INTO fences.t VALUES (1), (2), (1);
SELECT * FROM fences.story();
DROP TRIGGER a_again ON fences.t;
DROP TRIGGER replace ON fences.t;

-- One statement deletes and inserts the same key.
WITH gone AS (DELETE FROM fences.t WHERE id = 1 RETURNING id) INSERT INTO fences.t SELECT id FROM gone;
-- Savepoints: what was rolled back leaves no trace in the order.
BEGIN;
INSERT INTO fences.t VALUES (21);
SAVEPOINT a;
UPDATE fences.t SET n = 1 WHERE id = 21;
DELETE FROM fences.t WHERE id = 21;
ROLLBACK TO a;
UPDATE fences.t SET n = 2 WHERE id = 21;
SAVEPOINT b;
DELETE FROM fences.t WHERE id = 21;
INSERT INTO fences.t VALUES (21);
RELEASE b;
UPDATE fences.t SET n = 3 WHERE id = 21;
COMMIT;
-- A row that is locked by key before it changes.
BEGIN;
SELECT id FROM fences.t WHERE id = 21 FOR KEY SHARE;
UPDATE fences.t SET n = 4 WHERE id = 21;
DELETE FROM fences.t WHERE id = 21;
COMMIT;
SELECT * FROM fences.story();

-- Cascades, deferred triggers, many changes of one row.
CREATE TABLE fences.parent (id int PRIMARY KEY);
CREATE TABLE fences.child (id int PRIMARY KEY, parent int REFERENCES fences.parent ON DELETE CASCADE ON UPDATE CASCADE DEFERRABLE);
SELECT fences.track('fences.parent', 900003), fences.track('fences.child', 900004);
INSERT INTO fences.parent VALUES (101);
INSERT INTO fences.child VALUES (102, 101), (103, 101);
DELETE FROM fences.parent;
DO $$
BEGIN
  INSERT INTO fences.t VALUES (31);
  FOR i IN 1..20 LOOP
    UPDATE fences.t SET n = i WHERE id = 31;
  END LOOP;
  DELETE FROM fences.t WHERE id = 31;
END
$$;
CREATE CONSTRAINT TRIGGER late AFTER INSERT ON fences.t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fences.again();
INSERT INTO fences.t VALUES (41);
SELECT * FROM fences.story();

SELECT pg_drop_replication_slot('fences');
DROP SCHEMA fences CASCADE;
DROP PUBLICATION fences;
DELETE FROM synchro.tombstone WHERE rel_no >= 900001;
