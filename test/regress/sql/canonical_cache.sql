-- Descriptors are kept for the session: but not those of a manifest whose transaction or savepoint was rolled back.
CREATE SCHEMA canonical_cache;
SET search_path = canonical_cache, pg_catalog;
CREATE TABLE t (id int PRIMARY KEY, a text);
INSERT INTO t VALUES (1, 'x');
CREATE FUNCTION describe(p_type text) RETURNS void LANGUAGE sql SET search_path = canonical_cache, pg_catalog AS $$
  INSERT INTO synchro.manifest VALUES (9000003, repeat('cc', 32), NULL, 'initial', 9000003, '{}');
  INSERT INTO synchro.relation (rel_no, table_id, physical_schema, physical_relation, relation_oid) OVERRIDING SYSTEM VALUE VALUES (9000003, gen_random_uuid(), 'canonical_cache', 't', 't'::regclass);
  INSERT INTO synchro.manifest_field VALUES (9000003, 9000003, '00000000-0000-4000-8000-000000000001', 'id', 1, p_type, p_type = 'string', false, false, true);
$$;
\set VERBOSITY terse
BEGIN;
SELECT describe('int');
SELECT synchro._row_json(9000003, 9000003, t) FROM t;
ROLLBACK;
SELECT synchro._row_json(9000003, 9000003, t) FROM t;
BEGIN;
SAVEPOINT s;
SELECT describe('string');
SELECT synchro._row_json(9000003, 9000003, t) FROM t;
ROLLBACK TO s;
SELECT describe('int');
SELECT synchro._row_json(9000003, 9000003, t) FROM t;
ROLLBACK;

-- The right to execute is enough: the caller needs none on our tables.
BEGIN;
SELECT describe('int');
CREATE ROLE canonical_cache_reader;
GRANT USAGE ON SCHEMA synchro, canonical_cache TO canonical_cache_reader;
GRANT SELECT ON t TO canonical_cache_reader;
GRANT EXECUTE ON FUNCTION synchro._row_json(int, bigint, record) TO canonical_cache_reader;
SET LOCAL ROLE canonical_cache_reader;
SELECT synchro._row_json(9000003, 9000003, t) FROM t;
SELECT current_user;
ROLLBACK;

-- The extension is created again: nothing of the old one is used.
BEGIN;
SELECT describe('int');
SELECT synchro._row_json(9000003, 9000003, t) FROM t;
SET LOCAL client_min_messages = warning;
DROP EXTENSION synchro CASCADE;
CREATE EXTENSION synchro;
SELECT describe('string');
SELECT synchro._row_json(9000003, 9000003, t) FROM t;
ROLLBACK;
RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA canonical_cache CASCADE;
