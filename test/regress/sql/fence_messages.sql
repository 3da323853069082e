-- One authentic fence for every row operation that really happened.
\getenv inputs PG_ABS_SRCDIR
\set fixture :inputs '/fixtures/fences.sql'
\set ECHO none
\i :fixture
\set ECHO all
CREATE TABLE fences."Or""der" ("Id" int PRIMARY KEY, "select" text);
SELECT fences.track('fences."Or""der"');

-- Everything that a fence says.
INSERT INTO fences."Or""der" VALUES (1, 'a') RETURNING xmin AS inserted \gset
UPDATE fences."Or""der" SET "select" = 'b' RETURNING xmin AS updated \gset
DELETE FROM fences."Or""der";
CREATE TEMP TABLE seen AS SELECT r.n, r.authentic, f.* FROM fences.read() r, fences.parse(r.body) p,
  jsonb_to_record(p) f(op text, kind text, rel_no int, relation_id uuid, table_id uuid, ordinal bigint, fence_id uuid, row_xmin bigint,
                       version text, relation text, key text, generated jsonb) WHERE r.what = 'F';
SELECT op, kind, rel_no, relation_id, table_id, relation, key, generated, authentic FROM seen ORDER BY n;
SELECT op, CASE op WHEN 'I' THEN row_xmin = :inserted WHEN 'U' THEN row_xmin = :updated ELSE row_xmin > :updated END AS right_xmin FROM seen ORDER BY n;
SELECT count(DISTINCT fence_id), count(DISTINCT version), bool_and(version ~ '^[A-Za-z0-9_-]{16}$') AS version_form,
       bool_and(fence_id::text ~ '^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab]') AS uuid_form, bool_and(ordinal > 0) AS positive FROM seen;
-- The tombstone has the version of the DELETE.
SELECT t.rel_no, t.key, t.server_version = s.version AS same FROM synchro.tombstone t, seen s WHERE t.rel_no = 900001 AND s.op = 'D';

-- Statements: ON CONFLICT, no row, several rows, MERGE, COPY.
INSERT INTO fences."Or""der" VALUES (2, 'a'), (3, 'a');
INSERT INTO fences."Or""der" VALUES (2, 'b') ON CONFLICT ("Id") DO UPDATE SET "select" = 'b';
INSERT INTO fences."Or""der" VALUES (2, 'b'), (4, 'c') ON CONFLICT DO NOTHING;
UPDATE fences."Or""der" SET "select" = 'b' WHERE "Id" = 99;
MERGE INTO fences."Or""der" o USING (VALUES (3), (5)) v(i) ON o."Id" = v.i
  WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (v.i, 'm');
COPY fences."Or""der" FROM STDIN;
6	copied
\.
SELECT * FROM fences.story();

-- Rolled back: nothing, also of a savepoint.
BEGIN;
SAVEPOINT a;
INSERT INTO fences."Or""der" VALUES (7);
ROLLBACK TO a;
INSERT INTO fences."Or""der" VALUES (8);
COMMIT;
BEGIN;
INSERT INTO fences."Or""der" VALUES (9);
ROLLBACK;
SELECT * FROM fences.story();
-- The xmin is that of the subtransaction that wrote the row.
BEGIN;
SAVEPOINT a;
INSERT INTO fences."Or""der" VALUES (10);
RELEASE a;
COMMIT;
SELECT (p->>'row_xmin')::bigint = o.xmin::text::bigint AS right_xmin, o.xmin::text::bigint <> r.xid AS of_subtransaction
  FROM fences.read() r, fences.parse(r.body) p, fences."Or""der" o WHERE r.what = 'F' AND o."Id" = 10;

-- A session that replays changes is no exception; nor is one with a replication origin.
SET session_replication_role = replica;
INSERT INTO fences."Or""der" VALUES (11);
RESET session_replication_role;
SELECT pg_replication_origin_create('fences') > 0 AS made;
SELECT pg_replication_origin_session_setup('fences');
INSERT INTO fences."Or""der" VALUES (12);
SELECT pg_replication_origin_session_reset();
SELECT pg_replication_origin_drop('fences');
SELECT * FROM fences.story();

-- A capture dependency has no table id and no tombstones.
CREATE TABLE fences.member (id uuid PRIMARY KEY, team text);
SELECT fences.track('fences.member', 900002, 'd');
INSERT INTO fences.member VALUES ('0a000000-0000-4000-8000-00000000000A', 't');
DELETE FROM fences.member;
SELECT p - 'ordinal' - 'fence_id' - 'version' - 'row_xmin' AS fence FROM fences.read() r, fences.parse(r.body) p WHERE r.what = 'F';
SELECT count(*) FROM synchro.tombstone WHERE rel_no = 900002;

-- Messages of others are not authentic; ours are.
CREATE ROLE fences_nobody;
SET ROLE fences_nobody;
SELECT pg_logical_emit_message(true, 'synchro', 'F' || repeat('x', 150)) IS NOT NULL AS emitted;
SELECT pg_logical_emit_message(true, 'synchro', '') IS NOT NULL AS emitted;
RESET ROLE;
DROP ROLE fences_nobody;
SELECT synchro._emit_push(3, 7), synchro._emit_activation(2);
SELECT synchro._emit_marker() <= pg_current_wal_flush_lsn() AS flushed;
SELECT r.what, r.authentic, CASE WHEN r.what IN ('P', 'A') THEN fences.u(r.body, 1, 8) END AS first,
       CASE r.what WHEN 'P' THEN fences.u(r.body, 9, 8) = 7 WHEN 'A' THEN fences.u(r.body, 9, 8) = r.xid
                   WHEN 'M' THEN length(r.body) = 8 END AS second FROM fences.read() r;

-- A rotated key is used at once, also by this session.
BEGIN;
UPDATE synchro.secret_key SET secret = substr(sha256(secret), 1, 16) WHERE purpose = 'fence';
COMMIT;
INSERT INTO fences."Or""der" VALUES (13);
SELECT what, authentic FROM fences.read() WHERE what = 'F';

SELECT pg_drop_replication_slot('fences');
DROP SCHEMA fences CASCADE;
DROP PUBLICATION fences;
DELETE FROM synchro.tombstone WHERE rel_no >= 900001;
