-- Rebuild: pages of one immutable snapshot, replayed exactly, and what ends a session.
BEGIN ISOLATION LEVEL REPEATABLE READ;
\getenv inputs PG_ABS_SRCDIR
\set fixture :inputs '/fixtures/endpoints.sql'
\set ECHO none
\i :fixture
\set ECHO all
SELECT ep.note(n, 'note ' || n, '{user:u}', 'l', n > 1) FROM generate_series(1, 3) n;
SELECT ep.item(n, n::text, '{user:u}', 'l', n > 1) FROM generate_series(-2, 2) n;
SELECT ep.note(4, 'soft', '{user:u}', 's'), ep.note(5, 'left', '{user:u}'), ep.note(5, 'left', '{elsewhere}'), ep.connect('u-1'), ep.connect('u-2');
-- Identity order: table ids, then keys; soft-deleted and departed rows are not in it.
SELECT ep.rebuild('u-1', 'user:u', 3);
SELECT ep.rebuild('u-1', 'user:u', 8);
SELECT ep.rebuild('u-1', 'user:u', 1000);
-- One stage for all of them.
SELECT count(*) AS stages, sum(cardinality) AS rows FROM synchro.rebuild_stage;

-- A session by hand: token(n) is the continuation after page n.
CREATE FUNCTION ep.page(p_cursor text, p_change jsonb DEFAULT '{}') RETURNS text LANGUAGE sql AS $$
  SELECT CASE r.status WHEN 200 THEN r.body::text ELSE r.status || ' ' || (r.body #>> '{error,code}') || coalesce(' ' || (r.body #>> '{error,scope_id}'), '') END
    FROM ep.call('u-1', 'rebuild', jsonb_build_object('scope', 'user:u', 'limit', 3, 'cursor', coalesce(p_cursor, '?')) || p_change) r $$;
SELECT ep.page(NULL) AS first, ep.page(NULL)::jsonb ->> 'cursor' AS token1 \gset
SELECT ep.page(:'token1') AS second, ep.page(:'token1')::jsonb ->> 'cursor' AS token2 \gset
SELECT ep.page(:'token2') AS third \gset
SELECT jsonb_array_length(p -> 'records') AS records, p -> 'has_more' AS more, p ? 'checksum' AS checksum, p ? 'final_scope_cursor' AS final, p ->> 'cursor' IS NULL AS end
  FROM unnest(ARRAY[:'first', :'second', :'third']::jsonb[]) p;
-- Changes after the first page are not in it; every page is the same again. So it is after a rotation of keys.
SELECT ep.note(1, 'changed', '{user:u}'), ep.note(2, NULL, '{}', 'd'), ep.item(9, '9', '{user:u}');
SAVEPOINT s;
UPDATE synchro.secret_key SET state = 'verify_only' WHERE purpose IN ('rebuild', 'cursor');
INSERT INTO synchro.secret_key (purpose, key_id, secret, state) VALUES ('rebuild', 'new', sha256('a'), 'active'), ('cursor', 'new', sha256('b'), 'active');
SELECT ep.page(NULL) = :'first', ep.page(:'token1') = :'second', ep.page(:'token2') = :'third';
UPDATE synchro.secret_key SET state = 'retired' WHERE purpose = 'rebuild' AND state = 'verify_only';
SELECT ep.page(NULL), ep.page(:'token1');
ROLLBACK TO s;
-- Refused: another limit, another rebuild id, another scope, a token of another kind, a damaged one.
SELECT ep.page(:'token1', '{"limit":4}'), ep.page(NULL, '{"limit":4}'), ep.page(:'token1', '{"rebuild_id":"0e000000-0000-4000-8000-000000000002"}'),
       ep.page(NULL, '{"scope":"other"}'), ep.page(:'token1', '{"scope":"other"}'), ep.page(overlay(:'token1' PLACING 'AA' FROM 50)), ep.page(''),
       ep.page(:'third'::jsonb ->> 'final_scope_cursor'), ep.page(NULL, '{"rebuild_id":"00000000-0000-0000-0000-000000000000"}');
-- A token of this client that was signed for another user, client, scope, limit, rebuild id.
SELECT x, ep.page(synchro._token_sign('rebuild', synchro._token_open('rebuild', :'token1') - 'kid' || x)) FROM jsonb_array_elements('[{"u":"v"}, {"c":"u-2"}, {"s":"s"}, {"n":4}, {"i":"0e000000-0000-4000-8000-000000000002"}]') x;
-- Restart: stage gone, write accepted since, session expired, generations, assignment, the same for the first page.
SELECT ep.page(synchro._token_sign('rebuild', synchro._token_open('rebuild', :'token1') - 'kid' || '{"st":77}'));
SAVEPOINT t;
UPDATE synchro.client SET accepted_write_epoch = 1 WHERE client_id = 'u-1';
SELECT ep.page(:'token1'), ep.page(NULL);
ROLLBACK TO t;
UPDATE synchro.rebuild_session SET expires_at = now();
SELECT ep.page(:'token1'), ep.page(NULL);
ROLLBACK TO t;
UPDATE synchro.client SET client_generation = 2 WHERE client_id = 'u-1';
SELECT ep.page(:'token1', '{"client_generation":2}'), ep.page(:'token1');
ROLLBACK TO t;
UPDATE synchro.scope SET membership_generation = 2;
SELECT ep.page(:'token1');
ROLLBACK TO t;
UPDATE synchro.scope SET retention_generation = 2;
SELECT ep.page(:'token1');
ROLLBACK TO t;
UPDATE synchro.progress SET stream_generation = 2;
SELECT ep.page(:'token1');
ROLLBACK TO t;
SELECT ep.publish(9002, 9001, 'class_2', '{8000001,8000002}');
SELECT ep.page(:'token1') AS old_reference, ep.page(:'token1', jsonb_build_object('schema', ep.current())) AS new_reference;
ROLLBACK TO t;
UPDATE synchro.client_scope SET assigned = false;
SELECT ep.page(:'token1'), ep.page(NULL), ep.page(NULL, '{"rebuild_id":"0e000000-0000-4000-8000-000000000002"}');
ROLLBACK TO t;

-- Nothing outside the session changes; its own scope is acknowledged by the next pull.
SELECT ep.ack('u-1', 'user:u');
UPDATE ep.client SET scopes = jsonb_build_object('user:u', jsonb_build_object('cursor', :'third'::jsonb -> 'final_scope_cursor')) WHERE client_id = 'u-1';
SELECT ep.pull('u-1');
SELECT ep.ack('u-1', 'user:u') LIKE 'transaction_end %' AS acknowledged;
-- 24 hours, whatever is read meanwhile.
SELECT DISTINCT expires_at - issued_at FROM synchro.rebuild_session;
-- A client that wrote gets its writes: the old stage no longer serves it.
UPDATE synchro.client SET accepted_write_epoch = 1 WHERE client_id = 'u-2';
INSERT INTO synchro.client_materialized SELECT client_no, 1 FROM synchro.client WHERE client_id = 'u-2';
SELECT ep.rebuild('u-2', 'user:u');
-- A stage below what the client has seen never serves it again.
SELECT ep.rebuild('u-1', 'user:u');
SELECT ep.pull('u-1');
ROLLBACK;
