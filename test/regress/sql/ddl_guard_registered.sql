-- What would leave a registered table other than it was registered is refused up front, by whatever command.
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA guard;
CREATE TYPE guard.mood AS ENUM ('good', 'bad');
CREATE TYPE guard.place AS (x int, y int);
CREATE TABLE guard.row (a int);
CREATE TABLE guard.t (id int PRIMARY KEY, owner text NOT NULL, n int NOT NULL DEFAULT 0, mood guard.mood, twice int GENERATED ALWAYS AS (n * 2) STORED, kept int);
CREATE TABLE guard.parts (id int PRIMARY KEY, place guard.place, rows guard.row[]) PARTITION BY HASH (id);
CREATE ACCESS METHOD guard_heap TYPE TABLE HANDLER heap_tableam_handler;
GRANT SELECT ON guard.parts TO synchro_owner, synchro_worker;
CREATE TABLE guard.free (id int PRIMARY KEY, owner text);
GRANT USAGE ON SCHEMA guard TO synchro_owner, synchro_worker;
GRANT SELECT ON guard.t TO synchro_owner, synchro_worker;
SELECT synchro.synchro_prepare_projection_view('guard.t', 'guard_t', '{id,owner}');
CREATE FUNCTION guard.t_scopes(p_row_key int) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
BEGIN ATOMIC SELECT 'user:' || t.owner FROM synchro_projection.guard_t t WHERE t.id = p_row_key; END;
REVOKE EXECUTE ON FUNCTION guard.t_scopes(int) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION guard.t_scopes(int) TO synchro_worker;
CREATE FUNCTION guard.users_scopes(p_user text) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
BEGIN ATOMIC SELECT f.owner FROM guard.free f WHERE f.owner = p_user; END;
REVOKE EXECUTE ON FUNCTION guard.users_scopes(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION guard.users_scopes(text) TO synchro_owner;
SELECT synchro.synchro_register_table('guard.t', 'guard.t_scopes', p_push_policy => 'read_only', p_exclude_columns => '{kept}');
SELECT synchro.synchro_register_assignment_function('guard.users_scopes');
CREATE UNLOGGED TABLE guard.part_0 PARTITION OF guard.parts FOR VALUES WITH (MODULUS 3, REMAINDER 0);
SELECT synchro.synchro_register_capture_dependency('guard.parts', '{id}', '{place,rows}');
ALTER TABLE guard.part_0 SET LOGGED;
SELECT synchro.synchro_register_capture_dependency('guard.parts', '{id}', '{place,rows}');
INSERT INTO guard.t VALUES (1, 'ada');
SELECT synchro._drift();
-- the table
ALTER TABLE guard.t RENAME TO u;
ALTER TABLE guard.t SET SCHEMA public;
ALTER SCHEMA guard RENAME TO guarded;
ALTER TABLE guard.t SET UNLOGGED;
DROP TABLE guard.t;
DROP TABLE guard.free, guard.t CASCADE;
DROP SCHEMA guard CASCADE;
CREATE ROLE guard_owner;
GRANT guard_owner TO CURRENT_USER;
ALTER TABLE guard.t OWNER TO guard_owner;
DROP OWNED BY guard_owner;
ALTER TABLE guard.t OWNER TO CURRENT_USER;
DROP ROLE guard_owner;
-- its columns
ALTER TABLE guard.t RENAME owner TO holder;
ALTER TABLE guard.t DROP n CASCADE;
ALTER TABLE guard.t ALTER n TYPE bigint;
ALTER TABLE guard.t ALTER owner TYPE text USING owner || 'x';
ALTER TABLE guard.t ALTER twice DROP EXPRESSION;
DROP TYPE guard.mood CASCADE;
ALTER TYPE guard.mood RENAME VALUE 'good' TO 'better';
ALTER TYPE guard.place ADD ATTRIBUTE z int;
ALTER TYPE guard.place DROP ATTRIBUTE y;
ALTER TABLE guard.row ADD b int;
ALTER TABLE guard.row DROP a;
-- its partitions
CREATE UNLOGGED TABLE guard.part_1 PARTITION OF guard.parts FOR VALUES WITH (MODULUS 3, REMAINDER 1);
CREATE TABLE guard.part_1 PARTITION OF guard.parts FOR VALUES WITH (MODULUS 3, REMAINDER 1) USING guard_heap;
CREATE TABLE guard.part_1 (id int PRIMARY KEY, place guard.place, rows guard.row[]) USING guard_heap;
ALTER TABLE guard.parts ATTACH PARTITION guard.part_1 FOR VALUES WITH (MODULUS 3, REMAINDER 1);
ALTER TABLE guard.part_0 SET UNLOGGED;
-- key and replica identity
ALTER TABLE guard.t DROP CONSTRAINT t_pkey;
ALTER TABLE guard.t REPLICA IDENTITY FULL;
ALTER TABLE guard.t REPLICA IDENTITY USING INDEX t_pkey;
-- triggers
ALTER TABLE guard.t DISABLE TRIGGER ALL;
ALTER TABLE guard.t DISABLE TRIGGER USER;
ALTER TABLE guard.t ENABLE TRIGGER synchro_fence;
ALTER TABLE guard.t DISABLE TRIGGER synchro_truncate_guard;
DROP TRIGGER synchro_fence ON guard.t;
ALTER TRIGGER synchro_fence ON guard.t RENAME TO mine;
CREATE FUNCTION guard.nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE OR REPLACE TRIGGER synchro_fence AFTER INSERT ON guard.t FOR EACH ROW EXECUTE FUNCTION guard.nothing();
-- the publication
ALTER PUBLICATION synchro DROP TABLE guard.t;
ALTER PUBLICATION synchro SET TABLE guard.t WHERE (id > 1);
ALTER PUBLICATION synchro SET TABLE guard.t (id);
ALTER PUBLICATION synchro SET (publish = 'insert');
ALTER PUBLICATION synchro SET (publish_via_partition_root = false);
ALTER PUBLICATION synchro RENAME TO other;
DROP PUBLICATION synchro;
-- functions
DROP FUNCTION guard.t_scopes(int);
DROP FUNCTION guard.users_scopes(text);
ALTER TABLE guard.free DROP owner CASCADE;
-- all the same in a function, and in one of several commands
DO $$ BEGIN EXECUTE 'ALTER TABLE guard.t DISABLE TRIGGER ALL'; END $$;
DO $$ BEGIN ALTER TABLE guard.t ADD extra int; ALTER TABLE guard.t RENAME n TO m; END $$;
SELECT synchro._drift();
SELECT count(*) FROM guard.t;
-- what does no harm passes
CREATE TABLE guard.part_2 PARTITION OF guard.parts FOR VALUES WITH (MODULUS 3, REMAINDER 2);
ALTER TABLE guard.t ADD extra int DEFAULT 7;
ALTER TABLE guard.t RENAME extra TO more;
ALTER TABLE guard.t ALTER more TYPE text;
ALTER TABLE guard.t DROP more, DROP kept;
ALTER TABLE guard.t ALTER n SET DEFAULT 1, ALTER owner SET STATISTICS 10;
ALTER TABLE guard.t ADD CONSTRAINT positive CHECK (n >= 0);
ALTER TABLE guard.t RENAME CONSTRAINT positive TO not_negative;
ALTER TABLE guard.t DROP CONSTRAINT not_negative;
CREATE INDEX CONCURRENTLY t_owner ON guard.t (owner);
DROP INDEX CONCURRENTLY guard.t_owner;
DO $$ BEGIN EXECUTE 'ALTER TABLE guard.t ADD inside int'; EXECUTE 'CREATE INDEX t_n ON guard.t (n)'; END $$;
CREATE TRIGGER own BEFORE INSERT ON guard.t FOR EACH ROW EXECUTE FUNCTION guard.nothing();
ALTER TABLE guard.t DISABLE TRIGGER own;
DROP TRIGGER own ON guard.t;
ALTER TYPE guard.mood ADD VALUE 'fair';
ALTER TYPE guard.mood RENAME TO temper;
CLUSTER guard.t USING t_pkey;
VACUUM FULL guard.t;
CREATE TABLE guard.other (id int PRIMARY KEY, mood guard.temper);
ALTER TABLE guard.other RENAME TO another;
ALTER TABLE guard.another ALTER id TYPE bigint, DROP mood;
DROP TABLE guard.another;
DROP FUNCTION guard.nothing();
-- a table that this transaction takes out is free in it
BEGIN;
SELECT synchro.synchro_unregister_table('guard.t');
ALTER TABLE guard.t RENAME TO u;
DROP TABLE guard.u;
ROLLBACK;
-- a superuser who knows better; what was wrong before is nobody's fault, and can be repaired
SET synchro.ddl_guard = off;
ALTER TABLE guard.t DISABLE TRIGGER synchro_fence;
ALTER PUBLICATION synchro DROP TABLE guard.t;
SET synchro.ddl_guard = on;
SELECT "check", reason FROM synchro._drift() ORDER BY 1;
ALTER TABLE guard.t ADD again int;
ALTER TABLE guard.t RENAME TO u;
ALTER PUBLICATION synchro ADD TABLE guard.t;
ALTER TABLE guard.t ENABLE ALWAYS TRIGGER synchro_fence;
SELECT synchro._drift();
SELECT synchro.synchro_unregister_assignment_function();
SET synchro.ddl_guard = off;
SELECT synchro.synchro_unregister_table('guard.t');
SELECT synchro.synchro_unregister_capture_dependency('guard.parts');
DROP SCHEMA guard CASCADE;
DROP ACCESS METHOD guard_heap;
