-- The assignment function: connect and pull take its result, as it is now; a result that breaks a rule refuses the request whole.
BEGIN ISOLATION LEVEL REPEATABLE READ;
\getenv inputs PG_ABS_SRCDIR
\set fixture :inputs '/fixtures/endpoints.sql'
\set ECHO none
\i :fixture
\set ECHO all
CREATE TABLE ep.member (user_id text, team text);
CREATE FUNCTION ep.teams(p_user_id text) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
  BEGIN ATOMIC SELECT m.team FROM ep.member m WHERE m.user_id = p_user_id; END;
REVOKE EXECUTE ON FUNCTION ep.teams(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ep.teams(text) TO synchro_owner;
GRANT USAGE ON SCHEMA ep TO synchro_owner;
SELECT synchro.synchro_register_assignment_function('ep.teams');
INSERT INTO ep.member VALUES ('u', 'team:b'), ('u', 'team:a'), ('u', 'team:b'), ('v', 'team:v');
SELECT ep.connect('u-1');
DELETE FROM ep.member WHERE team = 'team:b';
SELECT ep.pull('u-1');
INSERT INTO ep.member VALUES ('u', 'team:é');
SELECT ep.pull('u-1');
SELECT ep.connect('u-1');
CREATE FUNCTION ep.state() RETURNS text LANGUAGE sql AS $$
  SELECT md5(concat((SELECT jsonb_agg(c ORDER BY client_no) FROM synchro.client c), (SELECT jsonb_agg(s ORDER BY client_no, scope_id) FROM synchro.client_scope s))) $$;
CREATE TEMP TABLE before AS SELECT ep.state() AS state;
-- No scope at all, or only blanks; a private scope of someone; too many.
SAVEPOINT s;
INSERT INTO ep.member VALUES ('u', NULL);
SELECT ep.verdict('u-1', 'connect'), ep.verdict('u-1', 'pull');
ROLLBACK TO s;
INSERT INTO ep.member VALUES ('u', ' ');
SELECT ep.verdict('u-1', 'connect'), ep.verdict('u-1', 'pull');
ROLLBACK TO s;
INSERT INTO ep.member VALUES ('u', 'user:v');
SELECT ep.verdict('u-1', 'connect'), ep.verdict('u-1', 'pull');
ROLLBACK TO s;
INSERT INTO ep.member SELECT 'u', 'n:' || n FROM generate_series(1, 998) n;
SELECT ep.verdict('u-1', 'connect'), ep.verdict('u-1', 'pull');
INSERT INTO ep.member VALUES ('u', 'n:999');
SELECT ep.verdict('u-1', 'connect'), ep.verdict('u-1', 'pull');
SELECT synchro.synchro_register_assignment_function('ep.teams', NULL);
SELECT ep.verdict('u-1', 'connect'), ep.verdict('u-1', 'pull');
SELECT scope_set_version, (SELECT count(*) FROM synchro.client_scope s WHERE s.client_no = c.client_no AND assigned) AS scopes FROM synchro.client c WHERE client_id = 'u-1';
ROLLBACK TO s;
-- Changed or gone since it was registered.
CREATE OR REPLACE FUNCTION ep.teams(p_user_id text) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
  BEGIN ATOMIC SELECT m.team FROM ep.member m; END;
SELECT ep.verdict('u-1', 'connect'), ep.verdict('u-1', 'pull');
ROLLBACK TO s;
DROP FUNCTION ep.teams(text);
SELECT ep.verdict('u-1', 'connect'), ep.verdict('u-1', 'pull');
ROLLBACK TO s;
-- A request that is refused otherwise is refused before the function is asked.
INSERT INTO ep.member VALUES ('u', NULL);
SELECT ep.verdict('u-1', 'pull', '{"limit":0}'), ep.verdict('u-1', 'pull', '{"scopes":{"team:v":{"cursor":null}}}'), ep.verdict('v-1', 'connect');
SELECT state = ep.state() AS untouched FROM before;
ROLLBACK TO s;
SELECT synchro.synchro_unregister_assignment_function();
SELECT ep.pull('u-1');
ROLLBACK;
