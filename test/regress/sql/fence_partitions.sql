-- Partitions: fences speak of the registered root, whatever number a column has in the partition.
\getenv inputs PG_ABS_SRCDIR
\set fixture :inputs '/fixtures/fences.sql'
\set ECHO none
\i :fixture
\set ECHO all
ALTER PUBLICATION fences SET (publish_via_partition_root = true);
CREATE TABLE fences.t (id int PRIMARY KEY, f float8, g int GENERATED ALWAYS AS (id * 2) STORED) PARTITION BY RANGE (id);
CREATE TABLE fences.one PARTITION OF fences.t FOR VALUES FROM (0) TO (10);
-- Another order of columns, and one that was dropped.
CREATE TABLE fences.two (gone text, f float8, also_gone text, id int NOT NULL, g int GENERATED ALWAYS AS (id * 2) STORED);
ALTER TABLE fences.two DROP COLUMN gone, DROP COLUMN also_gone;
ALTER TABLE fences.t ATTACH PARTITION fences.two FOR VALUES FROM (10) TO (20);
SELECT fences.track('fences.t');
CREATE TABLE fences.three (f float8, id int NOT NULL, g int GENERATED ALWAYS AS (id * 2) STORED);
ALTER TABLE fences.t ATTACH PARTITION fences.three FOR VALUES FROM (20) TO (30);
SELECT tgrelid::regclass, tgname, tgenabled FROM pg_trigger WHERE tgname ~ '^synchro' ORDER BY 1, 2;

INSERT INTO fences.t (id, f) VALUES (1, 1), (11, 1), (21, 1);
INSERT INTO fences.two (id, f) VALUES (12, 1);
UPDATE fences.t SET f = 2;
DELETE FROM fences.three;
SELECT p->>'op' AS op, p->>'relation' AS relation, p->>'key' AS key FROM fences.read() r, fences.parse(r.body) p WHERE r.what = 'F' ORDER BY r.n;
INSERT INTO fences.t (id, f) VALUES (13, 'NaN');
-- A move changes the key: by statement, and by a BEFORE trigger.
UPDATE fences.t SET id = 15 WHERE id = 1;
UPDATE fences.t SET id = 2 WHERE id = 1;
CREATE FUNCTION fences.rekey() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.id := 15; RETURN NEW; END$$;
CREATE TRIGGER z_rekey BEFORE UPDATE ON fences.one FOR EACH ROW EXECUTE FUNCTION fences.rekey();
UPDATE fences.t SET f = 3 WHERE id = 1;
DROP TRIGGER z_rekey ON fences.one;
TRUNCATE fences.t;
TRUNCATE fences.one;
-- Moved out of a registered partition of a table that is not: a deletion.
CREATE TABLE fences.log (region text, id int) PARTITION BY LIST (region);
CREATE TABLE fences.here PARTITION OF fences.log FOR VALUES IN ('here');
CREATE TABLE fences.there PARTITION OF fences.log FOR VALUES IN ('there');
ALTER TABLE fences.here ADD PRIMARY KEY (id);
SELECT synchro._install_triggers(900007, 'fences.here'::regclass, gen_random_uuid(), gen_random_uuid(), 's', 2::smallint, '{2}', '{}');
INSERT INTO fences.log VALUES ('here', 1);
UPDATE fences.log SET region = 'there';
SELECT p->>'op' AS op, p->>'key' AS key FROM fences.read() r, fences.parse(r.body) p WHERE r.what = 'F' ORDER BY r.n;

SELECT synchro._remove_triggers('fences.t'::regclass);
SELECT tgrelid::regclass, tgname FROM pg_trigger WHERE tgname ~ '^synchro' ORDER BY 1, 2;
SELECT pg_drop_replication_slot('fences');
DROP SCHEMA fences CASCADE;
DROP PUBLICATION fences;
DELETE FROM synchro.tombstone WHERE rel_no >= 900001;
