-- The baseline fills a projection from the source: every row, exact values, and no code of the application with our rights.
SET client_min_messages = warning;
CREATE SCHEMA bl;
CREATE ROLE bl_app;
GRANT ALL ON SCHEMA bl TO bl_app;
-- Captures all columns of a table, as a registration would; returns the number of its projection.
CREATE FUNCTION bl.capture(p_table text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  v_rel_no int;
BEGIN
  v_rel_no := synchro._capture_columns(p_table::regclass, ARRAY(SELECT attname FROM pg_attribute WHERE attrelid = p_table::regclass AND attnum > 0 AND NOT attisdropped));
  PERFORM synchro._set_projection_key(v_rel_no, 1::smallint);
  INSERT INTO synchro.registration (generation, rel_no, since, kind, composition, push_policy, key_column, key_attnum, key_type, pk_type, membership_function,
                                    membership_hash, max_scope_fanout, sync_columns, text_columns)
  SELECT max(generation), v_rel_no, max(generation), 'synced', 'single_scope', 'read_only', 'id', 1, 'int'::regtype, 'int', 0, '', 1, (SELECT array_agg(c.column_name ORDER BY c.attnum) FROM synchro.captured_column c WHERE c.rel_no = v_rel_no), '{}' FROM synchro.registry_generation;
  EXECUTE format('ALTER TABLE synchro_data.r_%s OWNER TO synchro_owner', v_rel_no);
  EXECUTE format('CREATE OR REPLACE VIEW bl.projection AS SELECT * FROM synchro_data.r_%s', v_rel_no);
  RETURN v_rel_no;
END
$$;
CREATE FUNCTION bl.baseline(p_rel_no int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  RETURN synchro._baseline(p_rel_no, (SELECT max(generation) FROM synchro.registry_generation), format('r_%s', p_rel_no)::name);
EXCEPTION WHEN OTHERS THEN
  RETURN SQLSTATE || ' ' || SQLERRM;
END
$$;

-- Sizes around the batch; twice gives the same rows with other versions.
BEGIN;
CREATE TABLE bl.t (id int PRIMARY KEY);
SELECT bl.capture('bl.t') AS r \gset
SELECT bl.baseline(:r), count(*) FROM bl.projection;
INSERT INTO bl.t SELECT generate_series(1, 999);
SELECT bl.baseline(:r);
-- Indexes of an empty projection are made at the end, of another one row by row: complete both times, and unique.
SET LOCAL enable_seqscan = off;
SELECT count(*) FROM bl.projection WHERE c1 BETWEEN 1 AND 999;
DO $$BEGIN INSERT INTO bl.projection SELECT * FROM bl.projection LIMIT 1; RAISE 'accepted'; EXCEPTION WHEN unique_violation THEN END$$;
INSERT INTO bl.t VALUES (1000);
SELECT bl.baseline(:r);
INSERT INTO bl.t VALUES (1001);
SELECT bl.baseline(:r);
CREATE TEMP TABLE before AS SELECT * FROM bl.projection;
SELECT bl.baseline(:r);
SELECT count(*), count(DISTINCT p.server_version), bool_and(p.server_version <> b.server_version), bool_and(p.row_xmin = t.xmin), bool_and(p.scopes = '{}')
  FROM bl.projection p JOIN before b USING (c1) JOIN bl.t ON t.id = p.c1;
SELECT count(*) FROM bl.projection WHERE c1 BETWEEN 1 AND 1001;
ROLLBACK;

-- Types: of the application as text, domains as what they are over, values out of line.
BEGIN;
CREATE TYPE bl."Color" AS ENUM ('RED', 'b lue');
CREATE TYPE bl.pair AS (a int, at timestamptz);
CREATE DOMAIN bl.even AS int CHECK (VALUE % 2 = 0);
CREATE DOMAIN bl.evens AS int[];
CREATE TABLE bl.t (id int PRIMARY KEY, color bl."Color", colors bl."Color"[], pair bl.pair, even bl.even, even_list bl.even[], evens bl.evens, ts timestamptz,
                   n numeric(8,2), big text, doc jsonb, gone int, twice int GENERATED ALWAYS AS (id * 2) STORED);
ALTER TABLE bl.t ALTER big SET STORAGE EXTERNAL;
ALTER TABLE bl.t DROP COLUMN gone;
ALTER TABLE bl.t ADD COLUMN late int DEFAULT 7;
INSERT INTO bl.t VALUES (1, 'RED', '{RED,"b lue",NULL}', '(1,"2020-01-01 00:00:00+00")', 2, '{2,4,NULL}', '{6}', '2020-01-01 00:00:00+00', 1.5, repeat('big', 50000), '{"a":[1,null]}');
INSERT INTO bl.t (id) VALUES (2);
SET LOCAL timezone = 'Asia/Kathmandu';
SET LOCAL datestyle = 'SQL, DMY';
SELECT bl.capture('bl.t') AS r \gset
SELECT bl.baseline(:r);
SET LOCAL timezone = 'UTC';
SET LOCAL datestyle = 'ISO, YMD';
SELECT c1, c2, c3, c4, c5, c6, pg_typeof(c6), c7, c8, c9, length(c10), c11, c13, c14 FROM bl.projection ORDER BY 1;
SELECT bool_and(p.c10 IS NOT DISTINCT FROM t.big) FROM bl.projection p JOIN bl.t ON t.id = p.c1;
ROLLBACK;

-- Partitions with other column numbers; row-level security that does not bind the owner; rules and triggers are no matter.
BEGIN;
CREATE TABLE bl.t (id int PRIMARY KEY, a text) PARTITION BY RANGE (id);
CREATE TABLE bl.one PARTITION OF bl.t FOR VALUES FROM (0) TO (10);
CREATE TABLE bl.two (a text, id int NOT NULL);
ALTER TABLE bl.t ATTACH PARTITION bl.two FOR VALUES FROM (10) TO (20);
INSERT INTO bl.t VALUES (1, 'one'), (11, 'two');
ALTER TABLE bl.t ENABLE ROW LEVEL SECURITY;
SELECT bl.capture('bl.t') AS r \gset
SELECT bl.baseline(:r);
SELECT c1, c2 FROM bl.projection ORDER BY 1;
ROLLBACK;

-- Policies that bind the owner are refused; others don't matter. Afterwards the role is the caller's.
BEGIN;
SET LOCAL ROLE bl_app;
CREATE TABLE bl.t (id int PRIMARY KEY, a text);
RESET ROLE;
INSERT INTO bl.t VALUES (1, 'x');
ALTER TABLE bl.t ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
SELECT bl.capture('bl.t') AS r \gset
SELECT bl.baseline(:r);
ALTER TABLE bl.t NO FORCE ROW LEVEL SECURITY;
SELECT bl.baseline(:r), current_user = session_user AS back;
-- As the worker does.
SET LOCAL ROLE synchro_worker;
SELECT synchro._baseline(:r, max(generation), 'r_' || :r) FROM synchro.registry_generation;
RESET ROLE;
-- Drift.
SAVEPOINT a;
ALTER TABLE bl.t RENAME a TO b;
SELECT bl.baseline(:r);
ROLLBACK TO a;
ALTER TABLE bl.t ALTER a TYPE varchar;
SELECT bl.baseline(:r);
ROLLBACK TO a;
DROP TABLE bl.t;
SELECT bl.baseline(:r);
SELECT bl.baseline(900999), synchro._baseline(:r, -1, 'r_' || :r);
ROLLBACK;
DROP SCHEMA bl CASCADE;
DROP ROLE bl_app;
