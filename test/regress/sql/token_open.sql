-- Tokens: only what we wrote, with a key that is not retired.
BEGIN ISOLATION LEVEL REPEATABLE READ;
\getenv inputs PG_ABS_SRCDIR
\set fixture :inputs '/fixtures/endpoints.sql'
\set ECHO none
\i :fixture
\set ECHO all
SELECT synchro._token_sign('cursor', '{"b":1,"a":"x","t":true,"n":-5}') AS token \gset
SELECT synchro._token_open('cursor', :'token') - 'kid' AS payload, :'token' ~ '^ic1\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{43}$' AS url_safe;
-- Every purpose has keys, a prefix and a domain of its own.
SELECT p, split_part(synchro._token_sign(p, '{}'), '.', 1), (SELECT count(synchro._token_open(q, synchro._token_sign(p, '{}'))) FROM unnest('{cursor,rebuild,seed_page,seed_receipt}'::text[]) q)
  FROM unnest('{cursor,rebuild,seed_page,seed_receipt}'::text[]) p;
SAVEPOINT s;
UPDATE synchro.secret_key SET secret = '\x0102030405060708090a0b0c0d0e0f10' WHERE purpose <> 'fence';
SELECT count(synchro._token_open(q, synchro._token_sign(p, '{}'))) AS same_key, count(synchro._token_open(q, 'ic1' || substr(synchro._token_sign(p, '{}'), 4))) AS other_prefix
  FROM unnest('{cursor,rebuild,seed_page,seed_receipt}'::text[]) p, unnest('{cursor,rebuild,seed_page,seed_receipt}'::text[]) q WHERE p <> q;
ROLLBACK TO s;
-- Every change of one character, every truncation, every insertion is noticed.
SELECT count(*) > 100 AS changes, count(synchro._token_open('cursor', overlay(:'token' PLACING c FROM i FOR 1))) AS opened
  FROM generate_series(1, length(:'token')) i, unnest('{A,B,Q,g,w,_,.,=}'::text[]) c WHERE substr(:'token', i, 1) <> c;
SELECT count(synchro._token_open('cursor', left(:'token', i))) + count(synchro._token_open('cursor', substr(:'token', i + 2))) AS opened FROM generate_series(0, length(:'token') - 1) i;
SELECT count(synchro._token_open('cursor', left(:'token', i) || 'A' || substr(:'token', i + 1))) AS opened FROM generate_series(0, length(:'token')) i;
SELECT count(synchro._token_open('cursor', t)) AS opened FROM unnest(ARRAY['', '.', '..', 'ic1.', 'ic1..', 'ic1.e30.', 'ic1.e30', :'token' || ' ', upper(:'token'), repeat('A', 100000)]) t;
-- A payload with a good MAC that we would have written differently.
CREATE FUNCTION ep.b64(p bytea) RETURNS text LANGUAGE sql AS $$ SELECT translate(rtrim(replace(encode(p, 'base64'), E'\n', ''), '='), '+/', '-_') $$;
CREATE FUNCTION ep.hmac(p_key bytea, p_data bytea) RETURNS bytea LANGUAGE sql AS $$
  SELECT sha256(x.o || sha256(x.i || p_data)) FROM (SELECT string_agg(set_byte('\x00', 0, get_byte(k.b, n) # 54), '' ORDER BY n) AS i, string_agg(set_byte('\x00', 0, get_byte(k.b, n) # 92), '' ORDER BY n) AS o
    FROM (SELECT p_key || decode(repeat('00', 64 - length(p_key)), 'hex') AS b) k, generate_series(0, 63) n) x $$;
CREATE FUNCTION ep.seal(p_payload text, p_state text DEFAULT 'active') RETURNS text LANGUAGE sql AS $$
  SELECT 'ic1.' || ep.b64(convert_to(p, 'UTF8')) || '.' || ep.b64(ep.hmac(k.secret, convert_to('synchro:v3:incremental-cursor:v1', 'UTF8') || '\x00' || convert_to(p, 'UTF8')))
    FROM synchro.secret_key k, replace(p_payload, 'KID', k.key_id) p WHERE k.purpose = 'cursor' AND k.state = p_state $$;
SELECT p, synchro._token_open('cursor', ep.seal(p)) IS NOT NULL AS opened FROM unnest(ARRAY['{"a":1,"kid":"KID"}', '{"kid":"KID","a":1}', '{"a":1, "kid":"KID"}', '{"a":1.0,"kid":"KID"}', '{"a":1e0,"kid":"KID"}', '{"a":"\u0041","kid":"KID"}',
  '{"a":1,"a":1,"kid":"KID"}', '{"a":1}', '{"a":1,"kid":"other"}', '{"a":null,"kid":"KID"}', '{"a":[1],"kid":"KID"}', '{"a":{},"kid":"KID"}', '{"a":0.5,"kid":"KID"}', '{"a":9007199254740993,"kid":"KID"}', '["KID"]', '"KID"', '']) p;
-- Rotation: verify_only still opens, retired no more; the active key signs, none signs without one.
SELECT synchro._token_key('cursor') AS old \gset
UPDATE synchro.secret_key SET state = 'verify_only' WHERE purpose = 'cursor';
SELECT synchro._token_open('cursor', :'token') IS NOT NULL AS opened, synchro._token_sign('cursor', '{}') IS NULL AS unsigned, synchro._token_sign('cursor', '{}', :'old') IS NOT NULL AS by_id;
INSERT INTO synchro.secret_key (purpose, key_id, secret, state) VALUES ('cursor', 'fresh', sha256('fresh'), 'active');
SELECT synchro._token_open('cursor', :'token') IS NOT NULL AS opened, synchro._token_open('cursor', synchro._token_sign('cursor', '{}')) AS fresh, synchro._token_sign('cursor', '{"b":1,"a":"x","t":true,"n":-5}', :'old') = :'token' AS same;
UPDATE synchro.secret_key SET state = 'retired' WHERE key_id = :'old';
SELECT synchro._token_open('cursor', :'token') IS NOT NULL AS opened, synchro._token_sign('cursor', '{}', :'old') IS NOT NULL AS signed, synchro._token_key('cursor');
ROLLBACK TO s;
SELECT synchro._token_open('cursor', :'token') IS NOT NULL AS opened_again;
ROLLBACK;
