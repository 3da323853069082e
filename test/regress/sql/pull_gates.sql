-- What a pull refuses, in the order of the gates, and that a refusal leaves nothing behind.
BEGIN ISOLATION LEVEL REPEATABLE READ;
\getenv inputs PG_ABS_SRCDIR
\set fixture :inputs '/fixtures/endpoints.sql'
\set ECHO none
\i :fixture
\set ECHO all
SELECT ep.note(1, 'one', '{user:u}'), ep.connect('u-1'), ep.connect('v-1');
SELECT ep.rebuild('u-1', 'user:u');
SELECT ep.rebuild('v-1', 'user:v');
SELECT ep.pull('u-1');
CREATE FUNCTION ep.state() RETURNS text LANGUAGE sql AS $$
  SELECT md5(concat((SELECT jsonb_agg(c ORDER BY client_no) FROM synchro.client c), (SELECT jsonb_agg(s ORDER BY client_no, scope_id) FROM synchro.client_scope s),
                    (SELECT jsonb_agg(r ORDER BY rebuild_id) FROM synchro.rebuild_session r), (SELECT jsonb_agg(p) FROM synchro.progress p))) $$;
CREATE TEMP TABLE before AS SELECT ep.state() AS state;

-- Credential and binding come first, even when nothing else is right.
SELECT status, body FROM synchro.synchro_pull('', '{}'), synchro.synchro_pull(NULL, '{}') n (s, b, w), synchro.synchro_pull(repeat('x', 256), '{}') l (s, b, w) WHERE n.s = 401 AND l.s = 401;
UPDATE ep.client SET user_id = 'v' WHERE client_id = 'u-1';
SELECT ep.verdict('u-1', 'pull', '{"limit":0}');
UPDATE ep.client SET user_id = 'u' WHERE client_id = 'u-1';
-- A client that never connected.
SELECT ep.verdict('u-1', 'pull', '{"client_id":"nobody"}'), ep.verdict('u-1', 'rebuild', '{"client_id":"nobody","scope":"user:u"}');
SELECT count(*) FROM synchro.client WHERE client_id = 'nobody';
-- Shape.
SELECT x, ep.verdict('u-1', 'pull', jsonb_build_object('limit', x)) FROM jsonb_array_elements('[1, 1000, 0, -1, 1001, 1.5, "1", null, true]') x;
SELECT x, ep.verdict('u-1', 'pull', x) FROM jsonb_array_elements('[{"surplus":1}, {"scopes":[]}, {"scopes":{"user:u":null}}, {"scopes":{"user:u":{}}}, {"scopes":{"user:u":{"cursor":1}}},
  {"scopes":{"user:u":{"cursor":null,"x":1}}}, {"scopes":{"":{"cursor":null}}}, {"scope_set_version":-1}, {"scope_set_version":9007199254740992}, {"client_generation":0}, {"client_generation":"1"}, {"client_id":""},
  {"schema":null}, {"schema":{"version":0,"hash":""}}, {"schema":{"version":1,"hash":"AA"}}]') x;
SELECT r, status, body FROM (VALUES ('{'), ('[]'), ('null'), ('{"client_id":"u-1","client_id":"u-1"}'), ('{"client_id":"\ud800"}'), ('{"limit":1e2}'), ('')) v (r), LATERAL synchro.synchro_pull('u', r);
-- The same integer in another spelling is no integer.
SELECT n, status FROM (VALUES ('1'), ('1.0'), ('1e0'), ('01'), ('+1'), ('-0')) v (n), LATERAL synchro.synchro_pull('u', replace(ep.request('u-1', 'pull', '{"limit":77}'), '"limit": 77', '"limit": ' || n));
-- Retirement, then the generation, then the schema.
SAVEPOINT s;
UPDATE synchro.client SET retired_at = now() WHERE client_id = 'u-1';
SELECT ep.verdict('u-1', 'pull', '{"client_generation":7}'), ep.verdict('u-1', 'rebuild', '{"scope":"user:u"}'), ep.verdict('u-1', 'pull', '{"limit":0}');
ROLLBACK TO s;
SELECT g, ep.verdict('u-1', 'pull', jsonb_build_object('client_generation', g, 'schema', '{"version":1,"hash":"0000000000000000000000000000000000000000000000000000000000000000"}'::jsonb))
  FROM jsonb_array_elements('[null, 7]') g;
UPDATE synchro.client SET expired = true WHERE client_id = 'u-1';
SELECT ep.verdict('u-1', 'pull');
ROLLBACK TO s;
SELECT replace(ep.verdict('u-1', 'pull', '{"schema":{"version":9001,"hash":"0000000000000000000000000000000000000000000000000000000000000000"},"scopes":{"user:u":{"cursor":"forged"}}}'),
               ep.current() ->> 'hash', '<current>');
-- Scopes and versions that this client cannot know.
SELECT ep.verdict('u-1', 'pull', '{"scopes":{"user:v":{"cursor":null}}}'), ep.verdict('u-1', 'pull', '{"scope_set_version":2}'), ep.verdict('u-1', 'pull', '{"scope_set_version":0}');
-- Nothing of all this was written.
SELECT state = ep.state() AS untouched FROM before;
ROLLBACK;
-- Page, cursors and checksums come from one snapshot, or not at all.
\set VERBOSITY sqlstate
SELECT synchro.synchro_pull('u', '{}');
SELECT synchro.synchro_rebuild('u', '{}');
