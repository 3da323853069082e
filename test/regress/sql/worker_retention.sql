-- synchro_compact: by the worker, one batch a call, and nothing at all when a parameter makes no sense.
SET client_min_messages = warning;
CREATE SCHEMA keep;
BEGIN;
CREATE TABLE keep.item (id int PRIMARY KEY, owner text NOT NULL);
GRANT USAGE ON SCHEMA keep TO synchro_owner, synchro_worker;
GRANT SELECT ON keep.item TO synchro_owner, synchro_worker;
SELECT synchro.synchro_prepare_projection_view('keep.item', 'keep_item', '{id,owner}');
CREATE FUNCTION keep.item_scopes(p_row_key int) RETURNS SETOF text LANGUAGE sql STABLE
SET search_path = pg_catalog, synchro BEGIN ATOMIC
  SELECT 'user:' || i.owner FROM synchro_projection.keep_item i WHERE i.id = p_row_key AND i.owner IS NOT NULL;
END;
REVOKE EXECUTE ON FUNCTION keep.item_scopes(int) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION keep.item_scopes(int) TO synchro_worker;
SELECT synchro.synchro_register_table('keep.item', 'keep.item_scopes', p_push_policy => 'read_only');
INSERT INTO keep.item SELECT n, 'kim' FROM generate_series(1, 5) n;
COMMIT;
SELECT synchro.synchro_compact() ->> 'deleted_entries' AS entries;
DELETE FROM keep.item WHERE id <= 3;
-- Refused before anything is done.
\set VERBOSITY terse
SELECT synchro.synchro_compact('0');
SELECT synchro.synchro_compact('-1 day');
SELECT synchro.synchro_compact('1 month -1 day');
SELECT synchro.synchro_compact('100 years');
SELECT synchro.synchro_compact('170000000 years');
SELECT synchro.synchro_compact(NULL, 0);
SELECT synchro.synchro_compact(NULL, 10001);
SELECT synchro.synchro_compact(NULL, NULL);
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT synchro.synchro_compact();
ROLLBACK;
SELECT DISTINCT floor_kind FROM synchro.scope WHERE scope_id = 'user:kim';
SELECT count(*) AS requests FROM synchro.compaction WHERE request IS NOT NULL;
-- Everything committed so far counts; each call is a batch.
SELECT synchro.synchro_compact(NULL, 2) FROM generate_series(1, 3);
SELECT floor_kind, floor_lsn = high_lsn AS high FROM synchro.scope WHERE scope_id = 'user:kim';
SELECT state, count(*) FROM synchro.scope_entry JOIN synchro.scope USING (scope_no) WHERE scope_id = 'user:kim' GROUP BY state;
-- It is not part of the caller's transaction.
BEGIN;
DELETE FROM keep.item WHERE id = 4;
SELECT synchro.synchro_compact();
COMMIT;
BEGIN;
SELECT synchro.synchro_compact();
ROLLBACK;
SELECT state, count(*) FROM synchro.scope_entry JOIN synchro.scope USING (scope_no) WHERE scope_id = 'user:kim' GROUP BY state;
-- Nor does it wait for a registration, be it the caller's own.
BEGIN;
SELECT synchro.synchro_register_table('keep.item', 'keep.item_scopes', p_push_policy => 'read_only', p_max_scope_fanout => 3);
SELECT synchro.synchro_compact() ->> 'deleted_entries' AS entries;
ROLLBACK;
-- Two at once in one statement, and the record of what was done.
SELECT synchro.synchro_compact('1 day'), synchro.synchro_compact('90 min', 10000);
SELECT expired_clients, deleted_entries, failure FROM synchro.compaction WHERE request IS NOT NULL ORDER BY compaction_no;
-- Clients that have acknowledged nothing for long expire first, whatever else they did.
INSERT INTO synchro.client (client_id, user_id, created_at, last_acknowledged_at) VALUES ('fresh', 'kim', now(), NULL), ('idle', 'kim', now() - interval '2 days', NULL),
  ('busy', 'kim', now() - interval '2 days', now() - interval '1 hour'), ('gone', 'kim', now() - interval '90 days', now() - interval '40 days');
SELECT synchro.synchro_compact();
SELECT client_id, expired FROM synchro.client WHERE user_id = 'kim' ORDER BY 1;
SELECT synchro.synchro_compact('1 day');
SELECT client_id, expired FROM synchro.client WHERE user_id = 'kim' ORDER BY 1;
-- Nobody waits for a worker that cannot answer.
INSERT INTO synchro.quarantine (stream_generation, commit_lsn, class) VALUES (1, '0/0', 'test');
SELECT synchro.synchro_compact();
DELETE FROM synchro.quarantine;
