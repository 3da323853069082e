-- Assignment: connect and pull find the same set, report the difference to what was presented, and write only changes.
BEGIN ISOLATION LEVEL REPEATABLE READ;
\getenv inputs PG_ABS_SRCDIR
\set fixture :inputs '/fixtures/endpoints.sql'
\set ECHO none
\i :fixture
\set ECHO all
SELECT ep.connect('u-1'), ep.connect('v-1');
SELECT ep.rebuild('u-1', 'user:u');
CREATE FUNCTION ep.state() RETURNS text LANGUAGE sql AS $$
  SELECT md5(concat((SELECT jsonb_agg(c) FROM (SELECT ctid, scope_set_version FROM synchro.client ORDER BY client_no) c), (SELECT jsonb_agg(s) FROM (SELECT ctid, * FROM synchro.client_scope ORDER BY client_no, scope_id) s))) $$;
SELECT ep.pull('u-1');
SELECT ep.connect('u-1');
-- Unchanged: nothing written.
SELECT ep.state() AS before, ep.connect('u-1'), ep.state() AS after \gset
SELECT :'before' = :'after' AS unwritten;
SELECT ep.pull('u-1'), ep.state() = :'before' AS unwritten;
-- A shared scope and a grant come: one step, seen by a pull without a connect.
SELECT synchro.synchro_register_shared_scope('shared'), synchro.synchro_grant_user_scope('u', 'granted');
SELECT ep.pull('u-1');
-- The answer was lost: the same difference again, no further step.
SELECT ep.pull('u-1', 100, '{"scope_set_version":1,"scopes":{}}');
SELECT ep.rebuild('u-1', 'shared');
SELECT ep.rebuild('u-1', 'granted');
SELECT ep.pull('u-1');
SELECT ep.connect('v-1'), ep.connect('u-1');
-- They go again; a scope once assigned may still be presented, by a pull that has not heard of it.
SELECT scopes AS old FROM ep.client WHERE client_id = 'u-1' \gset
SELECT synchro.synchro_revoke_user_scope('u', 'granted'), ep.note(1, 'secret', '{granted,user:u}');
SELECT ep.pull('u-1');
SELECT ep.pull('u-1', 100, jsonb_build_object('scopes', :'old'::jsonb));
SELECT ep.verdict('u-1', 'rebuild', '{"scope":"granted"}');
SELECT ep.ack('u-1', 'granted') LIKE 'transaction_end%' AS checkpoint_kept;
SELECT synchro.synchro_unregister_shared_scope('shared'), synchro.synchro_revoke_user_scope('u', 'user:u');
SELECT ep.connect('u-1');
SELECT ep.pull('u-1');
-- And come back: with the checkpoint of a scope that is new.
SELECT synchro.synchro_grant_user_scope('u', 'user:u'), synchro.synchro_grant_user_scope('u', 'granted');
SELECT ep.connect('u-1'), ep.ack('u-1', 'granted'), ep.ack('u-1', 'user:u');
-- An old cursor of it is no way around the rebuild: it is still a cursor, from a position that the client did reach.
SELECT ep.rebuild('u-1', 'granted');
-- A failing pull writes no assignment.
SELECT synchro.synchro_register_shared_scope('later'), ep.state() AS before \gset
SELECT ep.verdict('u-1', 'pull', '{"limit":0}'), ep.verdict('u-1', 'pull', '{"scopes":{"user:u":{"cursor":"forged"}}}'), ep.state() = :'before' AS unwritten;
ROLLBACK;
