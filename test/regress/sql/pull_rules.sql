-- Rules of pulls beyond paging: which scopes an answer is about, what counts against the limit, where a cursor may stand.
BEGIN ISOLATION LEVEL REPEATABLE READ;
\getenv inputs PG_ABS_SRCDIR
\set fixture :inputs '/fixtures/endpoints.sql'
\set ECHO none
\i :fixture
\set ECHO all
SELECT ep.note(1, 'one', '{user:u,s,t}'), synchro.synchro_register_shared_scope('s'), synchro.synchro_grant_user_scope('u', 't'), ep.connect('u-1');
SELECT ep.rebuild('u-1', s) FROM unnest('{s,t,user:u}'::text[]) s;
SELECT ep.pull('u-1');

-- A request without scopes is told of all of them; so is one that knows another set. Checksums are those of the active scopes, the ones to be
-- rebuilt included.
SAVEPOINT s;
SELECT ep.pull('u-1', 100, '{"scopes":{}}');
ROLLBACK TO s;
SELECT synchro.synchro_grant_user_scope('u', 'late'), synchro.synchro_revoke_user_scope('u', 't');
SELECT ep.pull('u-1');
-- What was assigned once may still be presented, whatever became of it since; it gets no cursor and no changes.
SELECT ep.note(2, 'two', '{t,s}');
SELECT ep.pull('u-1', 100, jsonb_build_object('scopes', (SELECT scopes || '{"t":{"cursor":null}}' FROM ep.client WHERE client_id = 'u-1')));
-- It comes back without its old place.
SELECT synchro.synchro_grant_user_scope('u', 't');
SELECT ep.pull('u-1');
SELECT ep.ack('u-1', 't');
ROLLBACK TO s;

-- Exactly as many as the limit are all of them.
SELECT ep.note(n, 'n' || n, '{s}') FROM generate_series(2, 4) n;
SELECT ep.pull('u-1', 3);
ROLLBACK TO s;
-- Effects of one event are told apart by their ordinals, also where a page ends between them.
SELECT ep.note(n, 'n' || n, '{s}', 'l', n > 2) FROM generate_series(2, 6) n;
UPDATE synchro.scope_entry e SET event_ordinal = 4, effect_ordinal = r.n FROM (SELECT x.key, row_number() OVER (ORDER BY x.key) AS n FROM synchro.scope_entry x
  WHERE x.commit_lsn = (SELECT commit_lsn FROM synchro.progress)) r WHERE e.key = r.key AND e.commit_lsn = (SELECT commit_lsn FROM synchro.progress);
SELECT ep.pull('u-1', 2);
SELECT ep.pull('u-1', 2);
SELECT ep.pull('u-1', 2);
ROLLBACK TO s;
-- Scopes at places far apart: each page goes on with the oldest, and all come to the end.
SELECT ep.note(n, 't' || n, '{t}') FROM generate_series(2, 4) n;
SELECT ep.note(n, 's' || n, '{s}') FROM generate_series(5, 6) n;
SELECT ep.pull('u-1', 2);
SELECT ep.pull('u-1', 2);
SELECT ep.pull('u-1', 2);
ROLLBACK TO s;
-- The same key in two tables is two rows, whatever its type and text.
SELECT ep.item(1, '100', '{s}'), ep.note(1, 'note', '{s}');
SELECT ep.pull('u-1');
ROLLBACK TO s;
-- What is captured after the boundary is not there yet.
SELECT ep.note(2, 'two', '{s}'), ep.note(3, 'three', '{s}');
UPDATE synchro.progress SET commit_lsn = (SELECT min(commit_lsn) FROM synchro.scope_entry e JOIN synchro.scope s USING (scope_no) WHERE s.scope_id = 's' AND e.commit_lsn > (SELECT min(high_lsn) FROM synchro.scope));
SELECT left(ep.pull('u-1'), 22);
ROLLBACK TO s;
-- Effects of a table that is not in the manifest are no candidates, and don't take a place within the limit.
SELECT ep.item(n, '100', '{s}') FROM generate_series(1, 3) n;
SELECT ep.note(2, 'two', '{s}');
SELECT ep.publish(9002, 9001, 'class_2', '{8000001}');
SELECT ep.connect('u-1');
SELECT ep.pull('u-1', 1);
ROLLBACK TO s;
-- One stale cursor concerns its scope; one forged cursor refuses everything, also beside a stale one.
SELECT ep.note(2, 'two', '{s,t}');
UPDATE synchro.scope SET membership_generation = 2 WHERE scope_id = 't';
SELECT ep.verdict('u-1', 'pull', jsonb_build_object('scopes', (SELECT jsonb_set(scopes, '{user:u,cursor}', '"ic1.forged.forged"') FROM ep.client WHERE client_id = 'u-1')));
SELECT ep.pull('u-1');
ROLLBACK TO s;
-- What an answer that says nothing waits for: the scopes' numbers, 0 for one that has none; with capture pending, the client's push.
SELECT synchro.synchro_grant_user_scope('u', 'empty');
SELECT left(ep.pull('u-1'), 3);
SELECT ep.rebuild('u-1', 'empty');
SELECT r.wait_on = ARRAY(SELECT 0::bigint UNION SELECT s.scope_no FROM synchro.scope s WHERE s.scope_id IN ('s', 't', 'user:u') ORDER BY 1) AS scopes FROM ep.call('u-1', 'pull') r;
UPDATE synchro.client SET accepted_write_epoch = 1;
SELECT r.status, r.wait_on = ARRAY(SELECT -client_no FROM synchro.client) AS push FROM ep.call('u-1', 'pull') r;
SELECT r.status, r.wait_on = ARRAY(SELECT -client_no FROM synchro.client) AS push FROM ep.call('u-1', 'rebuild', '{"scope":"s"}') r;
SELECT r.status, r.wait_on FROM ep.call('u-1', 'pull', '{"limit":0}') r;
ROLLBACK;
