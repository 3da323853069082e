-- Values of stored generated columns travel in the fence, in text that no setting of the writer changes.
\getenv inputs PG_ABS_SRCDIR
\set fixture :inputs '/fixtures/fences.sql'
\set ECHO none
\i :fixture
\set ECHO all
CREATE TYPE fences."Color" AS ENUM ('RED', 'blue');
CREATE TABLE fences.t (
  id int PRIMARY KEY, at timestamptz,
  local timestamp GENERATED ALWAYS AS (at AT TIME ZONE 'UTC') STORED,
  again timestamptz GENERATED ALWAYS AS (at) STORED,
  span interval GENERATED ALWAYS AS (make_interval(days => id, hours => 2)) STORED,
  third float8 GENERATED ALWAYS AS (id / 3.0::float8) STORED,
  raw bytea GENERATED ALWAYS AS ('\x00ff'::bytea) STORED,
  color fences."Color" GENERATED ALWAYS AS (CASE WHEN id > 1 THEN 'RED'::fences."Color" END) STORED,
  long text GENERATED ALWAYS AS (repeat('x', id * 1000)) STORED,
  other int GENERATED ALWAYS AS (id) STORED);
INSERT INTO synchro.relation (rel_no, physical_schema, physical_relation, relation_oid) OVERRIDING SYSTEM VALUE VALUES (900010, 'fences', 't', 'fences.t'::regclass);
INSERT INTO synchro.captured_column (rel_no, attnum, column_name, source_type, storage_type, generated)
SELECT 900010, attnum, attname, atttypid, 'text', attgenerated = 's' FROM pg_attribute WHERE attrelid = 'fences.t'::regclass AND attnum > 0 AND attname <> 'other';
SELECT fences.track('fences.t', 900010);
SET timezone = 'Asia/Kathmandu';
SET datestyle = 'SQL, DMY';
SET intervalstyle = 'sql_standard';
SET extra_float_digits = -3;
SET bytea_output = 'escape';
INSERT INTO fences.t VALUES (1, '2020-01-02 03:04:05.6+00');
INSERT INTO fences.t VALUES (2, NULL);
UPDATE fences.t SET at = '2021-01-01 00:00:00+00' WHERE id = 2;
-- The writer's settings are as they were.
SELECT again, span, raw FROM fences.t WHERE id = 1;
DELETE FROM fences.t WHERE id = 2;
RESET ALL;
SET client_min_messages = warning;
SELECT p->>'op' AS op, p->>'key' AS key, left(g->>1, 40) AS value, length(g->>1) AS length, a.attname
  FROM fences.read() r, fences.parse(r.body) p LEFT JOIN LATERAL jsonb_array_elements(p->'generated') WITH ORDINALITY x(g, o) ON true
  LEFT JOIN pg_attribute a ON a.attrelid = 'fences.t'::regclass AND a.attnum = (g->>0)::int WHERE r.what = 'F' ORDER BY r.n, o;
SELECT pg_drop_replication_slot('fences');
DROP SCHEMA fences CASCADE;
DROP PUBLICATION fences;
DELETE FROM synchro.captured_column WHERE rel_no = 900010;
DELETE FROM synchro.relation WHERE rel_no = 900010;
DELETE FROM synchro.tombstone WHERE rel_no >= 900001;
