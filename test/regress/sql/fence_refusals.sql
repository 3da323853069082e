-- What the stream could not carry is refused at the writer, and nothing of it stays.
\getenv inputs PG_ABS_SRCDIR
\set fixture :inputs '/fixtures/fences.sql'
\set ECHO none
\i :fixture
\set ECHO all
CREATE FUNCTION fences.try(p_sql text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_hint text;
  v_column text;
BEGIN
  EXECUTE p_sql;
  RETURN 'done';
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS v_hint = PG_EXCEPTION_HINT, v_column = COLUMN_NAME;
  RETURN concat_ws(' | ', SQLSTATE, SQLERRM, nullif(v_column, ''), nullif(v_hint, ''));
END
$$;
CREATE TABLE fences.t (id text PRIMARY KEY, f float8, d date, ts timestamptz, n numeric, j json, s text, x float8, big text);
ALTER TABLE fences.t ALTER big SET STORAGE EXTERNAL;
SELECT fences.track('fences.t', p_as_text => '{x}');
INSERT INTO fences.t (id, s) VALUES ('a', 'one');

-- Keys: by statement, by a BEFORE trigger that runs after the guard, to a value that is equal but written in another way.
SELECT fences.try($$UPDATE fences.t SET id = 'b'$$);
SELECT fences.try($$UPDATE fences.t SET id = 'a', s = 'two'$$);
SELECT fences.try($$UPDATE fences.t SET id = NULL$$);
CREATE FUNCTION fences.rekey() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.id := 'c'; RETURN NEW; END$$;
CREATE TRIGGER z_rekey BEFORE UPDATE ON fences.t FOR EACH ROW EXECUTE FUNCTION fences.rekey();
SELECT fences.try($$UPDATE fences.t SET s = 'three'$$);
SELECT fences.try($$UPDATE fences.t SET id = id$$);
DROP TRIGGER z_rekey ON fences.t;
CREATE TABLE fences.range (r numrange PRIMARY KEY);
SELECT fences.track('fences.range', 900005);
INSERT INTO fences.range VALUES ('[1.0,2)');
SELECT fences.try($$UPDATE fences.range SET r = '[1.00,2)'$$);
SELECT id, s FROM fences.t;

-- TRUNCATE: direct, by cascade, of a partition, in a replaying session.
SELECT fences.try('TRUNCATE fences.t');
CREATE TABLE fences.parent (id text PRIMARY KEY);
ALTER TABLE fences.t ADD FOREIGN KEY (s) REFERENCES fences.parent NOT VALID;
SELECT fences.try('TRUNCATE fences.parent CASCADE');
SET session_replication_role = replica;
SELECT fences.try('TRUNCATE fences.t');
RESET session_replication_role;
ALTER TABLE fences.t DROP CONSTRAINT t_s_fkey;

-- Values without portable form: the column is named, the value is not.
SELECT fences.try($$INSERT INTO fences.t (id, f) VALUES ('x', 'NaN')$$);
SELECT fences.try($$INSERT INTO fences.t (id, f) VALUES ('x', '-Infinity')$$);
SELECT fences.try($$INSERT INTO fences.t (id, d) VALUES ('x', 'infinity')$$);
SELECT fences.try($$INSERT INTO fences.t (id, d) VALUES ('x', '0044-03-15 BC')$$);
SELECT fences.try($$UPDATE fences.t SET ts = '10000-01-01 00:00:00+00'$$);
SELECT fences.try($$UPDATE fences.t SET n = 'NaN'$$);
SELECT fences.try($$UPDATE fences.t SET j = '{"a":1,"a":2}'$$);
SELECT fences.try($$UPDATE fences.t SET j = '["\u0000"]'$$);
SELECT fences.try($$UPDATE fences.t SET s = U&'\FDD0'$$);
SELECT fences.try($$INSERT INTO fences.t (id) VALUES (U&'\FFFE')$$);
-- A column that is synced as text takes them.
SELECT fences.try($$UPDATE fences.t SET x = 'NaN'$$), fences.try($$UPDATE fences.t SET x = 'Infinity'$$);
-- A value that was there before is no concern of an update that leaves it alone.
ALTER TABLE fences.t DISABLE TRIGGER synchro_fence;
UPDATE fences.t SET j = '{"a":1,"a":2}', big = U&'\FDD0' || repeat('x', 100000);
ALTER TABLE fences.t ENABLE ALWAYS TRIGGER synchro_fence;
SELECT fences.try($$UPDATE fences.t SET s = 'four'$$), fences.try($$UPDATE fences.t SET j = '{"b":1,"b":2}'$$);
UPDATE fences.t SET j = NULL, big = NULL;

-- That update had no fence; the others have.
SELECT * FROM fences.story() WHERE NOT agree;

-- Rows that are too large, also when they are small once compressed; unchanged values count.
SHOW synchro.max_row_bytes;
SELECT fences.try($$UPDATE fences.t SET big = repeat('x', 1000000)$$);
SELECT fences.try($$UPDATE fences.t SET s = repeat('x', 64 * 1024 * 1024)$$);
SELECT fences.try($$UPDATE fences.t SET s = repeat('x', 64 * 1024 * 1024 - 1000100)$$);
SELECT fences.try($$INSERT INTO fences.t (id, s, j) VALUES ('x', repeat('x', 40000000), to_json(repeat('x', 40000000)))$$);

-- Keys that the indexes of the extension might not take, though the table's own does. The text counts: a number has fewer octets in the index.
SELECT fences.try($$INSERT INTO fences.t (id) VALUES (repeat('é', 1024))$$), fences.try($$INSERT INTO fences.t (id) VALUES (repeat('é', 1024) || 'x')$$);
SELECT fences.try(format('INSERT INTO fences.range VALUES (%L)', numrange(1, ('1' || repeat('0', 2044))::numeric)))
     , fences.try(format('INSERT INTO fences.range VALUES (%L)', numrange(1, ('1' || repeat('0', 2043))::numeric)));
DELETE FROM fences.t WHERE id <> 'a';

-- A dropped column is the worker's matter, not the writers'; without the key there is no fence.
CREATE TABLE fences.dropped (id int PRIMARY KEY, a text, b float8);
SELECT fences.track('fences.dropped', 900008);
ALTER TABLE fences.dropped DROP COLUMN a;
SELECT fences.try($$INSERT INTO fences.dropped VALUES (1, 2)$$), fences.try($$INSERT INTO fences.dropped VALUES (2, 'NaN')$$);
ALTER TABLE fences.dropped DROP COLUMN id CASCADE;
SELECT fences.try($$INSERT INTO fences.dropped VALUES (2)$$);

-- COPY FREEZE.
BEGIN;
CREATE TABLE fences.fresh (id int PRIMARY KEY);
SELECT fences.track('fences.fresh', 900006);
COPY fences.fresh FROM STDIN (FREEZE);
1
\.
ROLLBACK;
BEGIN;
CREATE TABLE fences.fresh (id int PRIMARY KEY);
SELECT fences.track('fences.fresh', 900006);
COPY fences.fresh FROM STDIN;
1
\.
COMMIT;

-- A registration that is complete.
BEGIN;
SELECT synchro._seal_registration();
SAVEPOINT a;
INSERT INTO fences.fresh VALUES (2);
ROLLBACK;
BEGIN;
SAVEPOINT a;
SELECT synchro._seal_registration();
ROLLBACK TO a;
INSERT INTO fences.fresh VALUES (2);
COMMIT;
INSERT INTO fences.fresh VALUES (3);
SELECT count(*) FROM fences.story() WHERE NOT agree;

SELECT pg_drop_replication_slot('fences');
DROP SCHEMA fences CASCADE;
DROP PUBLICATION fences;
DELETE FROM synchro.tombstone WHERE rel_no >= 900001;
