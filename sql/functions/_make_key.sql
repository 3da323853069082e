CREATE FUNCTION synchro._make_key(p_purpose text) RETURNS text LANGUAGE sql VOLATILE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- A new active key of a purpose, from the server's strong random source (gen_random_uuid: 122 random bits each; two of them through
-- SHA-256). Returns its id. Errors: 23505 when the purpose has an active key.
INSERT INTO synchro.secret_key (purpose, key_id, secret, state)
VALUES (p_purpose, replace(gen_random_uuid()::text, '-', ''),
        substr(sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())), 1, CASE p_purpose WHEN 'fence' THEN 16 ELSE 32 END), 'active')
RETURNING key_id
$fn$;
