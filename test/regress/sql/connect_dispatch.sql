-- Connect: every schema action, client generations, versions.
BEGIN ISOLATION LEVEL REPEATABLE READ;
\getenv inputs PG_ABS_SRCDIR
\set fixture :inputs '/fixtures/endpoints.sql'
\set ECHO none
\i :fixture
\set ECHO all
SELECT ep.note(1, 'one', '{user:u,s,other}'), synchro.synchro_register_shared_scope('s');
-- Fresh; repeated because its answer was lost; confirmed by the next request, and fresh no more.
SELECT ep.connect('u-1');
UPDATE ep.client SET generation = NULL, schema = '{"version":0,"hash":""}', scopes = '{}';
SELECT ep.connect('u-1');
SELECT ep.rebuild('u-1', 's');
SELECT ep.rebuild('u-1', 'user:u');
SELECT ep.connect('u-1');
CREATE TEMP TABLE before AS SELECT (SELECT jsonb_agg(c ORDER BY client_no) FROM synchro.client c) AS clients, (SELECT jsonb_agg(s ORDER BY client_no, scope_id) FROM synchro.client_scope s) AS scopes;
-- The sentinel misused, malformed references, no generation.
SELECT x, ep.verdict('u-1', 'connect', x) FROM jsonb_array_elements('[{"client_generation":null}, {"schema":{"version":0,"hash":""}}, {"schema":{"version":0,"hash":""},"client_generation":null},
  {"schema":{"version":0,"hash":"00"}}, {"schema":{"version":1,"hash":""}}, {"schema":{"version":-1,"hash":""}}, {"schema":"x"}, {"schema":{"version":1}}]') x;
SELECT x, ep.verdict('u-1', 'connect', x || '{"client_id":"u-new"}') FROM jsonb_array_elements('[{"schema":{"version":0,"hash":""}}, {"schema":{"version":0,"hash":""},"client_generation":null,"schema_reset":true}]') x;
-- A wrong shape; seed receipts.
SELECT x, ep.verdict('u-1', 'connect', x) FROM jsonb_array_elements('[{"platform":null}, {"known_scopes":[]}, {"schema_reset":1}, {"seed_receipts":{}}, {"seed_receipts":{"s":"sc1.x"}}, {"app_version":"1"}, {"protocol_version":"3"}, {"user_id":"u"}]') x;
-- Versions come before the shape.
SELECT x, ep.verdict('u-1', 'connect', x) FROM jsonb_array_elements('[{"protocol_version":2}, {"protocol_version":4,"surplus":1}]') x;
-- Retired, after the schema reference.
SAVEPOINT s;
UPDATE synchro.client SET retired_at = now();
SELECT ep.verdict('u-1', 'connect'), ep.verdict('u-1', 'connect', '{"client_generation":null}');
ROLLBACK TO s;
SELECT clients = (SELECT jsonb_agg(c ORDER BY client_no) FROM synchro.client c) AND scopes = (SELECT jsonb_agg(s ORDER BY client_no, scope_id) FROM synchro.client_scope s) AS untouched FROM before;

-- Class 2: the manifest is replaced, cursors are signed anew at the same position.
CREATE FUNCTION ep.position(p_client text, p_scope text) RETURNS text LANGUAGE sql AS $$
  SELECT concat_ws(' ', o.lsn - (SELECT commit_lsn FROM synchro.progress), o.event, o.effect, o.schema_hash = ep.current() ->> 'hash', o.membership_generation) FROM ep.client c, synchro._cursor_open(c.scopes -> p_scope ->> 'cursor') o WHERE c.client_id = p_client $$;
SELECT ep.note(2, 'two', '{s}'), ep.note(3, 'three', '{s}');
SELECT ep.pull('u-1', 1);
SELECT ep.publish(9002, 9001, 'class_2', '{8000001,8000002}'), ep.position('u-1', 's'), ep.position('u-1', 'user:u');
SELECT ep.verdict('u-1', 'pull') LIKE '422 schema_mismatch%';
SELECT ep.connect('u-1'), ep.position('u-1', 's'), ep.position('u-1', 'user:u');
SELECT ep.pull('u-1');
SELECT ep.connect('u-1');
-- A forged or foreign cursor: the whole connect is refused.
SELECT ep.publish(9003, 9002, 'class_2', '{8000001,8000002}');
SELECT ep.verdict('u-1', 'connect', '{"known_scopes":{"s":{"cursor":"ic1.AAAA.AAAA"}}}'),
       ep.verdict('u-1', 'connect', (SELECT jsonb_build_object('known_scopes', jsonb_build_object('s', scopes -> 'user:u')) FROM ep.client WHERE client_id = 'u-1'));
-- A Class 3 step that touches one assigned scope, and one that touches none.
SELECT ep.publish(9004, 9003, 'class_3', '{8000001,8000002}', '{s,other}');
SELECT ep.connect('u-1'), ep.position('u-1', 's'), ep.position('u-1', 'user:u');
SELECT ep.rebuild('u-1', 's');
SELECT ep.publish(9005, 9004, 'class_3', '{8000001,8000002}', '{other}');
SELECT ep.connect('u-1'), ep.position('u-1', 's');
-- Behind several steps; the floor; a cursor of an older generation of its scope.
SELECT ep.publish(9006, 9005, 'class_3', '{8000001,8000002}', '{s}'), ep.publish(9007, 9006, 'class_2', '{8000001,8000002}'), ep.note(4, 'four', '{user:u}');
SAVEPOINT s;
UPDATE synchro.scope SET floor_kind = 'effect', floor_lsn = high_lsn, floor_event = 0, floor_effect = 0 WHERE scope_id = 'user:u';
SELECT ep.connect('u-1');
ROLLBACK TO s;
UPDATE synchro.scope SET membership_generation = 5 WHERE scope_id = 'user:u';
SELECT ep.connect('u-1');
ROLLBACK TO s;
UPDATE synchro.progress SET stream_generation = 2;
SELECT ep.connect('u-1');
ROLLBACK TO s;
SELECT ep.connect('u-1');
ROLLBACK TO s;
-- A Class 4 step, unknown lineage, a hash of another version; then the reset.
SELECT ep.publish(9008, 9007, 'class_4', '{8000001}');
SELECT ep.connect('u-1');
SELECT ep.connect('u-1', '{"schema":{"version":9001,"hash":"0000000000000000000000000000000000000000000000000000000000000000"}}');
SELECT ep.connect('u-1', (SELECT jsonb_build_object('schema', jsonb_build_object('version', 9008, 'hash', schema_hash)) FROM synchro.manifest WHERE schema_version = 9002));
SELECT ep.connect('u-1', '{"schema_reset":true}');
SELECT ep.connect('u-1', '{"schema_reset":true}');
SELECT ep.connect('u-1', '{"schema_reset":true,"schema":{"version":7,"hash":"0000000000000000000000000000000000000000000000000000000000000000"}}');
-- The reset of a client without scopes.
SELECT synchro.synchro_unregister_shared_scope('s'), synchro.synchro_revoke_user_scope('u', 'user:u');
SELECT ep.connect('u-1', '{"schema_reset":true,"schema":{"version":7,"hash":"0000000000000000000000000000000000000000000000000000000000000000"}}');
ROLLBACK TO s;

-- Generations: one the server doesn't know (higher, lower, of a lost record), an expired one. Cursors are void.
SELECT ep.connect('u-1');
SELECT ep.connect('u-1', '{"client_generation":7}');
SELECT ep.connect('u-1', '{"client_generation":3}');
SELECT ep.connect('u-1');
UPDATE synchro.client SET expired = true;
SELECT ep.verdict('u-1', 'pull'), ep.connect('u-1');
SELECT ep.verdict('u-1', 'pull'), ep.verdict('u-1', 'connect', '{"client_generation":9007199254740991}');
INSERT INTO ep.client SELECT 'u-restored', 'u', 41, schema, 9, scopes FROM ep.client WHERE client_id = 'u-1';
SELECT ep.connect('u-restored');
ROLLBACK;
