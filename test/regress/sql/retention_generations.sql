-- Client generations: expiry, renewal, retirement; connects that change nothing.
BEGIN ISOLATION LEVEL REPEATABLE READ;
\getenv inputs PG_ABS_SRCDIR
\set fixture :inputs '/fixtures/endpoints.sql'
\set ECHO none
\i :fixture
\set ECHO all
SELECT synchro.synchro_register_shared_scope('s'), synchro.synchro_grant_user_scope('u', 'g'), ep.note(1, 'one', '{s,g,user:u}');
SELECT ep.connect(c) FROM unnest('{u-1,u-2}'::text[]) c;
SELECT substr(ep.rebuild(c, s), 1, 9) FROM (VALUES ('u-1', 's'), ('u-1', 'g'), ('u-1', 'user:u'), ('u-2', 's'), ('u-2', 'g'), ('u-2', 'user:u')) v (c, s);
SELECT ep.pull(c) FROM unnest('{u-1,u-2}'::text[]) c;
CREATE FUNCTION ep.state(p_client text) RETURNS text LANGUAGE sql AS $$
  SELECT md5(concat((SELECT jsonb_agg(c) FROM synchro.client c WHERE client_id = p_client), (SELECT jsonb_agg(s ORDER BY scope_id) FROM synchro.client_scope s JOIN synchro.client USING (client_no) WHERE client_id = p_client))) $$;
-- A connect without a change writes nothing at all.
CREATE TEMP TABLE before AS SELECT 'client' AS t, ctid AS place FROM synchro.client UNION ALL SELECT 'scope', ctid FROM synchro.client_scope;
SELECT ep.connect('u-1');
SELECT count(*) AS rows, count(a.place) AS unwritten FROM before b LEFT JOIN (SELECT 'client' AS t, ctid AS place FROM synchro.client UNION ALL SELECT 'scope', ctid FROM synchro.client_scope) a USING (t, place);
SAVEPOINT s;
\set VERBOSITY terse

-- Expired: every request of it but connect; nobody else.
UPDATE synchro.client SET last_acknowledged_at = now() - interval '31 days' WHERE client_id = 'u-1';
SELECT ep.state('u-2') AS other \gset
SELECT synchro._expire_clients(now() - interval '30 days'), synchro._expire_clients(now() - interval '30 days') AS again;
SELECT ep.verdict('u-1', 'pull'), ep.verdict('u-1', 'rebuild', '{"scope":"s"}');
SELECT (synchro.synchro_revoke_user_scope('u', 'g')) IS NULL AS revoked;
SELECT ep.connect('u-1');
SELECT scope_id, assigned, ack_kind FROM synchro.client_scope JOIN synchro.client USING (client_no) WHERE client_id = 'u-1' ORDER BY 1;
SELECT ep.pull('u-1');
SELECT substr(ep.rebuild('u-1', s), 1, 9) FROM unnest('{s,user:u}'::text[]) s;
SELECT ep.pull('u-1');
SELECT ep.state('u-2') = :'other' AS untouched;
-- The old generation never comes back, and the new one has its whole time.
SELECT ep.verdict('u-1', 'pull', '{"client_generation":1}'), synchro._expire_clients(now() - interval '30 days');
ROLLBACK TO s;
-- Pushes and connects are no acknowledgement; a cursor that is not newer is none either; one in one scope is one.
UPDATE synchro.client SET last_acknowledged_at = now() - interval '31 days';
SELECT ep.connect('u-1');
SELECT ep.pull('u-1');
SELECT count(*) FROM synchro.client WHERE last_acknowledged_at > now() - interval '1 day';
SELECT ep.note(2, 'two', '{g}');
SELECT ep.pull('u-1');
SELECT count(*) FROM synchro.client WHERE last_acknowledged_at > now() - interval '1 day';
SELECT ep.pull('u-1');
SELECT client_id FROM synchro.client WHERE last_acknowledged_at > now() - interval '1 day';
SELECT synchro._expire_clients(now() - interval '30 days');
SELECT client_id, expired FROM synchro.client ORDER BY 1;
ROLLBACK TO s;
-- A first connect that is repeated after its generation has expired gives a new one.
UPDATE synchro.client SET confirmed = false, expired = true WHERE client_id = 'u-1';
UPDATE ep.client SET generation = NULL, schema = '{"version":0,"hash":""}', scopes = '{}' WHERE client_id = 'u-1';
SELECT ep.connect('u-1');
SELECT ep.connect('u-1', '{"client_generation":null,"schema":{"version":0,"hash":""},"known_scopes":{}}');
SELECT client_generation, confirmed, expired FROM synchro.client WHERE client_id = 'u-1';
ROLLBACK TO s;

-- One client, by an operator.
SELECT synchro.synchro_expire_client('u', 'u-1');
SELECT client_id, expired FROM synchro.client ORDER BY 1;
ROLLBACK TO s;
SELECT synchro.synchro_expire_client('', 'u-1');
ROLLBACK TO s;
SELECT synchro.synchro_expire_client('u', NULL);
ROLLBACK TO s;
SELECT synchro.synchro_retire_client('v', 'u-1');
ROLLBACK TO s;
-- Retired: every request, whatever else is wrong with it; the id is nobody's any more.
SELECT synchro.synchro_retire_client('u', 'u-1'), synchro.synchro_retire_client('u', 'u-1') AS again;
SELECT ep.verdict('u-1', 'connect'), ep.verdict('u-1', 'pull', '{"client_generation":7}'), ep.verdict('u-1', 'rebuild', '{"scope":"s"}');
UPDATE ep.client SET user_id = 'v' WHERE client_id = 'u-1';
SELECT ep.verdict('u-1', 'connect');
SAVEPOINT r;
UPDATE synchro.client SET retired_at = NULL WHERE client_id = 'u-1';
ROLLBACK TO r;
DELETE FROM synchro.client WHERE client_id = 'u-1';
ROLLBACK TO r;
TRUNCATE synchro.client CASCADE;
ROLLBACK TO r;
SELECT synchro.synchro_expire_client('u', 'u-1');
ROLLBACK TO r;
-- Its checkpoints go, those of others stay. What other files have left behind goes before.
DO $do$ BEGIN WHILE synchro._retire_configurations(10000) > 0 LOOP END LOOP; END $do$;
SELECT synchro._tidy(now() - interval '30 days', 100), synchro._tidy(now() - interval '30 days', 100) AS again, client_id, count(scope_id) FROM synchro.client LEFT JOIN synchro.client_scope USING (client_no) GROUP BY client_id ORDER BY 3;
ROLLBACK TO s;
-- Ledgers survive expiry and compaction, and go only after retirement.
INSERT INTO synchro.push_batch SELECT client_no, gen_random_uuid(), '', false, '{}' FROM synchro.client;
INSERT INTO synchro.push_mutation SELECT client_no, gen_random_uuid(), batch_id, '', true, '{}' FROM synchro.push_batch;
UPDATE synchro.client SET expired = true;
SELECT synchro._tidy(now(), 10000) >= 0 AS tidied, (SELECT count(*) FROM synchro.push_batch), (SELECT count(*) FROM synchro.push_mutation);
SAVEPOINT r;
DELETE FROM synchro.push_mutation;
ROLLBACK TO r;
DELETE FROM synchro.push_batch;
ROLLBACK TO r;
TRUNCATE synchro.push_batch;
ROLLBACK TO r;
TRUNCATE synchro.push_mutation;
ROLLBACK TO r;
SELECT synchro.synchro_retire_client('u', 'u-1');
DELETE FROM synchro.push_mutation m USING synchro.client c WHERE c.client_no = m.client_no AND c.client_id = 'u-1';
DELETE FROM synchro.push_batch m USING synchro.client c WHERE c.client_no = m.client_no AND c.client_id = 'u-1';
SELECT (SELECT count(*) FROM synchro.push_batch), (SELECT count(*) FROM synchro.push_mutation);
ROLLBACK;
