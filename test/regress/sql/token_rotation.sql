-- Rotation of keys: live clients go on, new tokens have the new key, a key is retired only by a call.
BEGIN ISOLATION LEVEL REPEATABLE READ;
\getenv inputs PG_ABS_SRCDIR
\set fixture :inputs '/fixtures/endpoints.sql'
\set ECHO none
\i :fixture
\set ECHO all
\set VERBOSITY terse
SELECT ep.note(n, 'note', '{user:u}') FROM generate_series(1, 3) n;
SELECT ep.connect('u-1');
SELECT ep.rebuild('u-1', 'user:u');
CREATE FUNCTION ep.page(p_cursor text) RETURNS text LANGUAGE sql AS $$ SELECT coalesce(r.body ->> 'cursor', r.body ->> 'final_scope_cursor', r.status || ' ' || (r.body #>> '{error,code}'))
  FROM ep.call('u-1', 'rebuild', jsonb_build_object('scope', 'user:u', 'limit', 2, 'cursor', p_cursor)) r $$;
CREATE FUNCTION ep.signer(p_purpose text, p_token text) RETURNS text LANGUAGE sql AS $$ SELECT k.state FROM synchro.secret_key k WHERE k.purpose = p_purpose AND k.key_id = synchro._token_open(p_purpose, p_token) ->> 'kid' $$;
SELECT ep.page('?') AS second, scopes -> 'user:u' ->> 'cursor' AS cursor FROM ep.client \gset
SELECT ep.page(:'second') AS final \gset
SELECT synchro._token_key('cursor') AS cursor_key, synchro._token_key('rebuild') AS rebuild_key, (SELECT key_id FROM synchro.secret_key WHERE purpose = 'fence') AS fence_key \gset

SELECT synchro.synchro_rotate_keys() AS rotated \gset
SELECT purpose, r ->> 'active' = (SELECT key_id FROM synchro.secret_key k WHERE k.purpose = p.purpose AND state = 'active') AS active,
       r ->> 'replaced' = (SELECT key_id FROM synchro.secret_key k WHERE k.purpose = p.purpose AND state = 'verify_only') AS replaced
  FROM jsonb_each(:'rotated') p (purpose, r) ORDER BY 1;
SELECT purpose, string_agg(state, ' ' ORDER BY state) AS states, count(DISTINCT secret) AS secrets, string_agg(DISTINCT length(secret)::text, ' ') AS octets FROM synchro.secret_key GROUP BY purpose ORDER BY 1;
-- The old cursor works, and is replaced by one of the new key; so in the middle of a rebuild, whose pages stay as they are.
SELECT ep.pull('u-1');
SELECT ep.signer('cursor', :'cursor') AS old, ep.signer('cursor', scopes -> 'user:u' ->> 'cursor') AS new FROM ep.client;
SELECT ep.page('?') = :'second' AS same, ep.page(:'second') = :'final' AS final, ep.signer('rebuild', :'second'), ep.signer('cursor', :'final');
SAVEPOINT s;
-- A second rotation on top of it.
SELECT count(synchro.synchro_rotate_keys());
SELECT state, count(*) FROM synchro.secret_key GROUP BY state ORDER BY 1;
SELECT ep.try FROM (SELECT status AS try FROM ep.call('u-1', 'pull', jsonb_build_object('scopes', jsonb_build_object('user:u', jsonb_build_object('cursor', :'cursor'))))) ep;
ROLLBACK TO s;
-- Refused: the active key, an unknown one; a fence key here.
SELECT synchro.synchro_retire_key(synchro._token_key('cursor'));
ROLLBACK TO s;
SELECT synchro.synchro_retire_key('nothing');
ROLLBACK TO s;
SELECT synchro.synchro_retire_key(NULL);
ROLLBACK TO s;
SELECT synchro.synchro_retire_key(:'fence_key');
ROLLBACK TO s;
-- Keys that could not be read are read again: not as if there were none.
CREATE FUNCTION ep.key_or_error() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN synchro._token_key('cursor'); EXCEPTION WHEN internal_error THEN RETURN 'error'; END $$;
INSERT INTO synchro.secret_key (purpose, key_id, secret, state) VALUES ('cursor', 'short', '', 'verify_only');
SELECT ep.key_or_error() AS first, ep.key_or_error() AS second;
ROLLBACK TO s;
SELECT synchro._token_key('cursor') IS NOT NULL AS there;
-- Retired: what it signed is refused, its secret is gone, and it cannot be used again.
SELECT synchro.synchro_retire_key(:'cursor_key'), synchro.synchro_retire_key(:'cursor_key') AS again;
SELECT state, length(secret) FROM synchro.secret_key WHERE key_id = :'cursor_key';
SELECT status, body #>> '{error,code}' FROM ep.call('u-1', 'pull', jsonb_build_object('scopes', jsonb_build_object('user:u', jsonb_build_object('cursor', :'cursor'))));
SELECT ep.pull('u-1');
-- The rebuild that would have signed with it starts again.
SELECT ep.page('?') = :'second' AS same, ep.page(:'second');
SELECT synchro.synchro_retire_key(:'rebuild_key');
SELECT ep.page('?'), ep.page(:'second');
ROLLBACK;
