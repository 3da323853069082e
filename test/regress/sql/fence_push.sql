-- Push context: its end writes the fences to a table; it ends with its (sub)transaction; policies see who pushes.
\getenv inputs PG_ABS_SRCDIR
\set fixture :inputs '/fixtures/fences.sql'
\set ECHO none
\i :fixture
\set ECHO all
CREATE TABLE fences.t (id int PRIMARY KEY, n int);
SELECT fences.track('fences.t');
INSERT INTO fences.t VALUES (1, 0);
SELECT count(*) FROM synchro.push_fence WHERE rel_no = 900001;
SELECT synchro.synchro_subject() IS NULL AS nobody, synchro.synchro_subject('role') IS NULL AS no_claim;

BEGIN;
SELECT synchro._push_context(5, 'u-1', '{"role": "editor", "n": 1}');
SELECT synchro.synchro_subject(), synchro.synchro_subject('role'), synchro.synchro_subject('absent');
INSERT INTO fences.t VALUES (2, 0);
SAVEPOINT a;
UPDATE fences.t SET n = 1 WHERE id = 2;
RELEASE a;
SAVEPOINT b;
UPDATE fences.t SET n = 2 WHERE id = 2;
INSERT INTO fences.t VALUES (3, 0);
ROLLBACK TO b;
DELETE FROM fences.t WHERE id = 1;
SELECT count(*) FROM synchro.push_fence WHERE rel_no = 900001;
SELECT synchro._push_context(NULL, NULL, NULL);
SELECT f.key, f.op, f.top_xid = pg_current_xact_id() AS of_transaction,
       CASE f.op WHEN 'U' THEN f.row_xmin = t.xmin AND t.xmin::text <> pg_current_xact_id()::text
                 WHEN 'I' THEN f.row_xmin::text = pg_current_xact_id()::text ELSE f.row_xmin = '0' END AS right_xmin
  FROM synchro.push_fence f LEFT JOIN fences.t t ON t.id::text = f.key WHERE f.rel_no = 900001 ORDER BY f.ordinal;
-- What the table says is what the WAL says.
CREATE TEMP TABLE pushed AS SELECT * FROM synchro.push_fence WHERE rel_no = 900001;
COMMIT;
SELECT count(*), bool_and(p.server_version = f->>'version' AND p.ordinal = (f->>'ordinal')::bigint AND (p.op = 'D' OR p.row_xmin::text = f->>'row_xmin') AND p.op::text = f->>'op') AS same
  FROM fences.read() r, fences.parse(r.body) f, pushed p WHERE r.what = 'F' AND p.ordinal = (f->>'ordinal')::bigint AND r.xid = p.top_xid::text::bigint;
SELECT synchro.synchro_subject() IS NULL AS nobody;

-- Ended, begun again, and rolled back in between.
BEGIN;
SELECT synchro._push_context(5, 'outer', NULL);
SELECT synchro.synchro_subject(), synchro.synchro_subject('role') IS NULL AS no_claim;
SAVEPOINT a;
SELECT synchro._push_context(NULL, NULL, NULL);
SELECT synchro.synchro_subject() IS NULL AS nobody;
ROLLBACK TO a;
SELECT synchro.synchro_subject();
SAVEPOINT a;
SELECT synchro._push_context(6, 'inner', NULL);
SELECT synchro.synchro_subject();
ROLLBACK TO a;
SELECT synchro.synchro_subject();
SAVEPOINT a;
SAVEPOINT b;
SELECT synchro._push_context(6, 'inner', NULL);
RELEASE b;
SELECT synchro.synchro_subject();
ROLLBACK TO a;
SELECT synchro.synchro_subject();
SAVEPOINT a;
SELECT synchro._push_context(NULL, NULL, NULL);
RELEASE a;
SELECT synchro.synchro_subject() IS NULL AS nobody;
INSERT INTO fences.t VALUES (7, 0);
SELECT count(*) FROM synchro.push_fence WHERE rel_no = 900001 AND key = '7';
COMMIT;
BEGIN;
SELECT synchro._push_context(5, 'u-1', NULL);
SELECT 1 / 0;
ROLLBACK;
-- A transaction that would lose them does not commit.
BEGIN;
SELECT synchro._push_context(5, 'u-1', NULL);
INSERT INTO fences.t VALUES (8, 0);
COMMIT;
SELECT count(*) FROM fences.t WHERE id = 8;
SELECT synchro.synchro_subject() IS NULL AS nobody;
SELECT synchro._push_context(5, NULL, NULL);

-- Policies of the application.
CREATE ROLE fences_writer;
GRANT synchro_writer TO fences_writer;
GRANT USAGE ON SCHEMA fences TO fences_writer;
CREATE TABLE fences.owned (id int PRIMARY KEY, owner text DEFAULT synchro.synchro_subject());
ALTER TABLE fences.owned ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON fences.owned USING (owner = synchro.synchro_subject());
GRANT ALL ON fences.owned TO fences_writer;
BEGIN;
SELECT synchro._push_context(5, 'u-1', NULL);
SET LOCAL ROLE fences_writer;
INSERT INTO fences.owned VALUES (1);
SAVEPOINT a;
INSERT INTO fences.owned VALUES (2, 'u-2');
ROLLBACK TO a;
SELECT * FROM fences.owned;
RESET ROLE;
SELECT synchro._push_context(NULL, NULL, NULL);
SET LOCAL ROLE fences_writer;
SELECT * FROM fences.owned;
ROLLBACK;
-- Nobody else begins one, emits, or writes what fences write.
SET ROLE fences_writer;
SELECT synchro._push_context(5, 'u-1', NULL);
SELECT synchro._emit_push(1, 1);
SELECT synchro._emit_marker();
SELECT * FROM synchro.secret_key;
INSERT INTO synchro.tombstone VALUES (1, '1', 'x');
CREATE TEMP TABLE mine (id int);
CREATE TRIGGER synchro_fence AFTER INSERT ON mine FOR EACH ROW EXECUTE FUNCTION synchro.synchro_fence('1');
RESET ROLE;
-- A deleting role needs no right on the tombstones.
GRANT ALL ON fences.t TO fences_writer;
SET ROLE fences_writer;
DELETE FROM fences.t WHERE id = 7;
RESET ROLE;
SELECT key FROM synchro.tombstone WHERE rel_no = 900001 ORDER BY key;

-- Waiting for the worker.
SELECT synchro._await_progress('0/0', 0), synchro._await_progress(pg_current_wal_lsn() + 1000000, 5);
SELECT synchro._await_progress('0/0', -1);

SELECT pg_drop_replication_slot('fences');
DROP SCHEMA fences CASCADE;
DROP PUBLICATION fences;
DROP OWNED BY fences_writer;
DROP ROLE fences_writer;
DELETE FROM synchro.tombstone WHERE rel_no >= 900001;
DELETE FROM synchro.push_fence WHERE rel_no >= 900001;
