-- An update that sets no key column is spared the key guard's row locks, and nothing else: every trigger that could fire fires.
\getenv inputs PG_ABS_SRCDIR
\set fixture :inputs '/fixtures/fences.sql'
\set ECHO none
\i :fixture
\set ECHO all
CREATE TABLE fences.t (id int PRIMARY KEY, n int, s text);
SELECT fences.track('fences.t');
INSERT INTO fences.t SELECT i, 0, 'x' FROM generate_series(1, 1000) i;
-- Octets of WAL that a statement writes for each row.
CREATE FUNCTION fences.wal(p_sql text) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
  v_start pg_lsn;
BEGIN
  EXECUTE p_sql; -- so that no page is logged as a whole later
  v_start := pg_current_wal_insert_lsn();
  EXECUTE p_sql;
  RETURN (pg_current_wal_insert_lsn() - v_start) / 1000;
END
$$;
SELECT fences.wal('UPDATE fences.t SET id = id, n = n + 1') - fences.wal('UPDATE fences.t SET n = n + 1') > 40 AS no_lock_records;
UPDATE fences.t SET id = 5000 WHERE id = 1;
WITH u AS (UPDATE fences.t SET n = 7 WHERE id = 2 RETURNING id) UPDATE fences.t SET id = 5000 WHERE id IN (SELECT id FROM u) OR id = 3;
INSERT INTO fences.t VALUES (1, 0, 'x') ON CONFLICT (id) DO UPDATE SET id = 5000;
MERGE INTO fences.t USING (VALUES (1)) v(id) ON t.id = v.id WHEN MATCHED THEN UPDATE SET id = 5000;
-- Triggers of the application: for all columns, for the one that is set, for another one.
CREATE FUNCTION fences.say() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE WARNING '%', TG_NAME; RETURN NEW; END$$;
CREATE TRIGGER on_s BEFORE UPDATE OF s ON fences.t FOR EACH ROW EXECUTE FUNCTION fences.say();
UPDATE fences.t SET n = 1 WHERE id = 1;
UPDATE fences.t SET s = 'y' WHERE id = 1;
CREATE TRIGGER on_all BEFORE UPDATE ON fences.t FOR EACH ROW EXECUTE FUNCTION fences.say();
UPDATE fences.t SET n = 2 WHERE id = 1;
SELECT id, n, s FROM fences.t WHERE id < 4 OR id > 1000 ORDER BY id;

-- A table that is not ours locks its rows as it always did.
CREATE TABLE fences.other (id int PRIMARY KEY, n int);
INSERT INTO fences.other SELECT i, 0 FROM generate_series(1, 1000) i;
CREATE TRIGGER on_id BEFORE UPDATE OF id ON fences.other FOR EACH ROW EXECUTE FUNCTION fences.say();
DROP TRIGGER on_id ON fences.other;
SELECT fences.wal('UPDATE fences.other SET n = n + 1') AS bare \gset
CREATE TRIGGER on_id BEFORE UPDATE OF id ON fences.other FOR EACH ROW EXECUTE FUNCTION fences.say();
SELECT fences.wal('UPDATE fences.other SET n = n + 1') - :bare > 40 AS lock_records;
