-- Partitions of a registered table come and go empty: no row operation would tell of their rows.
\getenv inputs PG_ABS_SRCDIR
\set fixture :inputs '/fixtures/fences.sql'
\set ECHO none
\i :fixture
\set ECHO all
\set VERBOSITY terse
CREATE TABLE fences.t (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE fences.one PARTITION OF fences.t FOR VALUES FROM (0) TO (10);
SELECT fences.track('fences.t');
CREATE TABLE fences.two PARTITION OF fences.t FOR VALUES FROM (10) TO (20);
CREATE TABLE fences.three (id int NOT NULL) PARTITION BY RANGE (id);
CREATE TABLE fences.leaf PARTITION OF fences.three FOR VALUES FROM (20) TO (25);
ALTER TABLE fences.t ATTACH PARTITION fences.three FOR VALUES FROM (20) TO (30);
CREATE TABLE fences.leaf2 PARTITION OF fences.three FOR VALUES FROM (25) TO (30);
INSERT INTO fences.t SELECT generate_series(0, 29);
-- new partitions, and partitions of them, have the guard
TRUNCATE fences.two;
TRUNCATE fences.three;
TRUNCATE fences.leaf;
TRUNCATE fences.leaf2;
CREATE TABLE fences.full (id int NOT NULL);
INSERT INTO fences.full VALUES (35);
ALTER TABLE fences.t ATTACH PARTITION fences.full FOR VALUES FROM (30) TO (40);
ALTER TABLE fences.t DETACH PARTITION fences.one;
ALTER TABLE fences.t DETACH PARTITION fences.one CONCURRENTLY;
DROP TABLE fences.one;
DROP TABLE fences.three;
DROP TABLE fences.leaf, fences.two;
-- also in a function
DO $$ BEGIN EXECUTE 'DROP TABLE fences.two'; END $$;
SELECT count(*) FROM fences.t;
DELETE FROM fences.t WHERE id < 20;
ALTER TABLE fences.t DETACH PARTITION fences.one;
TRUNCATE fences.one;
DROP TABLE fences.two;
-- inheritance children would hold rows without fences
CREATE TABLE fences.parent (id int PRIMARY KEY);
SELECT fences.track('fences.parent');
CREATE TABLE fences.child () INHERITS (fences.parent);
CREATE TABLE fences.child (id int NOT NULL);
ALTER TABLE fences.child INHERIT fences.parent;
-- tables that are not registered are nobody's business here
CREATE TABLE fences.free (id int PRIMARY KEY) PARTITION BY RANGE (id);
ALTER TABLE fences.free ATTACH PARTITION fences.full FOR VALUES FROM (30) TO (40);
ALTER TABLE fences.free DETACH PARTITION fences.full;
CREATE TABLE fences.heir () INHERITS (fences.child);
-- who knows better
SET synchro.ddl_guard = off;
ALTER TABLE fences.t ATTACH PARTITION fences.full FOR VALUES FROM (30) TO (40);
RESET synchro.ddl_guard;
-- by whatever command: not with a schema, nor with all that a role owns
CREATE SCHEMA away;
ALTER TABLE fences.three SET SCHEMA away;
DROP SCHEMA away CASCADE;
CREATE ROLE part_owner;
ALTER TABLE fences.leaf OWNER TO part_owner;
DROP OWNED BY part_owner;
SELECT count(*) FROM fences.t;
SET synchro.ddl_guard = off;
DROP SCHEMA away CASCADE;
DROP ROLE part_owner;
DROP TABLE fences.t;
SELECT pg_drop_replication_slot('fences');
SET client_min_messages = warning;
DROP SCHEMA fences CASCADE;
DROP PUBLICATION fences;
DELETE FROM synchro.tombstone WHERE rel_no >= 900001;
