-- What is between capture and a page: own writes, blocked capture, another stream, lost commits, damaged state.
BEGIN ISOLATION LEVEL REPEATABLE READ;
\getenv inputs PG_ABS_SRCDIR
\set fixture :inputs '/fixtures/endpoints.sql'
\set ECHO none
\i :fixture
\set ECHO all
SELECT ep.note(1, 'one', '{user:u}'), ep.connect('u-1'), ep.connect('u-2');
SELECT ep.rebuild('u-1', 'user:u');
SELECT ep.rebuild('u-2', 'user:u');
SAVEPOINT s;
-- An accepted push that is not materialized holds up this client only.
UPDATE synchro.client SET accepted_write_epoch = 3 WHERE client_id = 'u-1';
SELECT ep.verdict('u-1', 'pull'), ep.verdict('u-1', 'rebuild', '{"scope":"user:u"}'), ep.verdict('u-2', 'pull');
INSERT INTO synchro.client_materialized SELECT client_no, 2 FROM synchro.client WHERE client_id = 'u-1';
SELECT ep.verdict('u-1', 'pull');
UPDATE synchro.client_materialized SET write_epoch = 3;
SELECT ep.verdict('u-1', 'pull');
ROLLBACK TO s;
INSERT INTO synchro.quarantine (stream_generation, commit_lsn, class) VALUES (1, '0/1', 'test');
SELECT ep.verdict('u-1', 'pull'), ep.verdict('u-1', 'rebuild', '{"scope":"user:u","rebuild_id":"0e000000-0000-4000-8000-000000000009"}'), ep.verdict('u-1', 'connect');
UPDATE synchro.quarantine SET resolved_at = now(), resolution = 'retried';
SELECT ep.verdict('u-1', 'pull');
ROLLBACK TO s;
UPDATE synchro.progress SET system_identifier = system_identifier + 1;
SELECT ep.verdict('u-1', 'pull'), ep.verdict('u-1', 'rebuild', '{"scope":"user:u"}'), ep.verdict('u-1', 'connect');
ROLLBACK TO s;
UPDATE synchro.progress SET timeline = timeline + 1;
SELECT ep.verdict('u-1', 'pull');
ROLLBACK TO s;
UPDATE synchro.progress SET database_oid = 1;
SELECT ep.verdict('u-1', 'pull');
ROLLBACK TO s;
-- A materialized commit was lost: the client is ahead until it is made again.
SELECT ep.note(2, 'two', '{user:u}');
SELECT ep.pull('u-1');
UPDATE synchro.progress SET commit_lsn = commit_lsn - 256;
SELECT ep.verdict('u-1', 'pull');
-- Nobody announces the end of that, so nobody waits for it, unless a push of the client is on its way too.
SELECT r.status, r.wait_on FROM ep.call('u-1', 'pull') r;
SAVEPOINT pushed;
UPDATE synchro.client SET accepted_write_epoch = 1 WHERE client_id = 'u-1';
SELECT r.status, r.wait_on = ARRAY(SELECT -client_no FROM synchro.client WHERE client_id = 'u-1') AS push FROM ep.call('u-1', 'pull') r;
ROLLBACK TO pushed;
UPDATE synchro.progress SET commit_lsn = commit_lsn + 256;
SELECT ep.verdict('u-1', 'pull');
ROLLBACK TO s;

-- The captured version is served, or nothing: no changes, no cursors, no acknowledgement.
SELECT ep.note(3, 'three', '{user:u}');
SELECT count(p) FROM ep.pull('u-1') p;
SELECT ep.ack('u-1', 'user:u') AS ack \gset
SELECT ep.note(2, 'two', '{user:u}');
UPDATE synchro_data.r_8000001 SET server_version = 'other' WHERE c2 = 'two';
SELECT ep.verdict('u-1', 'pull'), ep.verdict('u-1', 'rebuild', '{"scope":"user:u","rebuild_id":"0e000000-0000-4000-8000-000000000009"}');
SELECT ep.ack('u-1', 'user:u') = :'ack' AS unmoved;
DELETE FROM synchro_data.r_8000001 WHERE c2 = 'two';
SELECT ep.verdict('u-1', 'pull'), ep.verdict('u-1', 'rebuild', '{"scope":"user:u","rebuild_id":"0e000000-0000-4000-8000-000000000009"}');
ROLLBACK TO s;
-- Two effects of a scope at one position cannot be told apart by a cursor.
SELECT ep.note(2, 'two', '{user:u}'), ep.note(3, 'three', '{user:u}', 'l', true);
UPDATE synchro.scope_entry SET event_ordinal = 0;
SELECT ep.verdict('u-1', 'pull', '{"limit":1}'), ep.verdict('u-1', 'pull', '{"limit":2}');
ROLLBACK TO s;
-- A digest of an older manifest is made anew.
SELECT ep.note(2, 'two', '{user:u}');
UPDATE synchro.scope_entry SET digest_schema = 1, row_digest = '\x00' WHERE row_digest IS NOT NULL;
SELECT r.body #>> '{changes,0,row_checksum,digest}' = encode(synchro._row_digest(8000001, 9001, n, n.server_version), 'hex') AS made_anew
  FROM ep.call('u-1', 'pull') r, synchro_data.r_8000001 n WHERE n.c2 = 'two';
ROLLBACK TO s;
ROLLBACK;
