-- Cursors: what each binding means, forged against stale, acknowledgement, the resume floor.
BEGIN ISOLATION LEVEL REPEATABLE READ;
\getenv inputs PG_ABS_SRCDIR
\set fixture :inputs '/fixtures/endpoints.sql'
\set ECHO none
\i :fixture
\set ECHO all
SELECT ep.note(1, 'one', '{user:u,s}'), synchro.synchro_register_shared_scope('s'), ep.connect('u-1'), ep.connect('u-2'), ep.connect('v-1');
SELECT ep.rebuild(c, s) FROM (VALUES ('u-1', 's'), ('u-1', 'user:u'), ('u-2', 's'), ('u-2', 'user:u'), ('v-1', 's'), ('v-1', 'user:v')) v (c, s);
CREATE FUNCTION ep.cursor(p_client text, p_scope text) RETURNS text LANGUAGE sql AS $$ SELECT scopes -> p_scope ->> 'cursor' FROM ep.client WHERE client_id = p_client $$;
-- A cursor with one field changed and signed anew.
CREATE FUNCTION ep.resign(p_client text, p_scope text, p_change jsonb) RETURNS text LANGUAGE sql AS $$
  SELECT synchro._token_sign('cursor', (SELECT jsonb_object_agg(key, value) FROM jsonb_each(synchro._token_open('cursor', ep.cursor(p_client, p_scope)) - 'kid' || p_change) WHERE value <> 'null')) $$;
CREATE FUNCTION ep.try(p_cursor text) RETURNS text LANGUAGE sql AS $$
  SELECT CASE r.status WHEN 200 THEN 'rebuild ' || (r.body ->> 'rebuild') ELSE r.status || ' ' || (r.body -> 'error' ->> 'code') END
    FROM ep.call('u-1', 'pull', jsonb_build_object('scopes', jsonb_build_object('s', jsonb_build_object('cursor', p_cursor), 'user:u', jsonb_build_object('cursor', ep.cursor('u-1', 'user:u'))))) r $$;
SELECT ep.try(ep.cursor('u-1', 's'));
-- Misbound: other user, other client of the same user, other scope, another purpose.
SELECT ep.try(ep.cursor('v-1', 's')), ep.try(ep.cursor('u-2', 's')), ep.try(ep.cursor('u-1', 'user:u'));
SELECT x, ep.try(ep.resign('u-1', 's', x)) FROM jsonb_array_elements('[{"u":"v"}, {"c":"u-2"}, {"s":"user:u"}, {"v":2}, {"k":"x"}, {"extra":1}, {"l":"0/0a"}, {"l":null}, {"e":1}, {"u":null}, {"t":"1"}]') x;
SELECT ep.try(synchro._token_sign('rebuild', synchro._token_open('cursor', ep.cursor('u-1', 's')) - 'kid'));
-- Stale: every generation, the schema.
SELECT x, ep.try(ep.resign('u-1', 's', x)) FROM jsonb_array_elements('[{"sg":2}, {"g":2}, {"h":"0000000000000000000000000000000000000000000000000000000000000000"}, {"m":2}, {"r":2}, {"m":0}]') x;
-- Every position comes back exactly.
SELECT count(*) AS positions, bool_and(o.lsn = p.lsn AND o.event = p.event AND o.effect = p.effect) AS exact, count(DISTINCT t) AS tokens
  FROM (SELECT l AS lsn, e AS event, f AS effect, synchro._cursor_sign(l, e, f, 1, 'u', 'c', 1, 's', 'h', 1, 1, 1) AS t
          FROM unnest('{0/0,0/1,0/A,1/0,FFFFFFFF/FFFFFFFF}'::pg_lsn[]) l, unnest('{0,1,9007199254740991}'::bigint[]) e, unnest('{0,7,2147483647}'::int[]) f) p, LATERAL synchro._cursor_open(t) o;
SELECT o.lsn, o.event, o.effect FROM (VALUES ('0/0'::pg_lsn, -1::bigint, -1), ('0/0', 9223372036854775807, 2147483647), ('5/6', 9223372036854775807, 2147483647)) p (l, e, f),
  LATERAL synchro._cursor_open(synchro._cursor_sign(l, e, f, 1, 'u', 'c', 1, 's', 'h', 1, 1, 1)) o;

-- A cursor counts when it is presented, and never takes a checkpoint back.
SELECT ep.note(2, 'two', '{s}'), ep.note(3, 'three', '{s}'), ep.cursor('u-1', 's') AS old \gset
SELECT ep.pull('u-1', 1);
SELECT ep.ack('u-1', 's') LIKE 'transaction_end%' AS unmoved, ep.ack('u-1', 'user:u') LIKE 'transaction_end%' AS other;
SELECT ep.pull('u-1', 1);
SELECT ep.ack('u-1', 's') LIKE 'effect % 0 0' AS moved;
SELECT ep.try(:'old');
SELECT ep.ack('u-1', 's') LIKE 'effect % 0 0' AS kept;
-- A failed request acknowledges nothing.
SELECT ep.verdict('u-1', 'pull', '{"limit":0}'), ep.ack('u-1', 's') LIKE 'effect % 0 0' AS kept;
SELECT ep.pull('u-1');
SELECT ep.ack('u-1', 's') LIKE 'transaction_end%' AS moved;
-- Activity elsewhere writes nothing for an unchanged scope.
SELECT ep.note(4, 'four', '{elsewhere}');
CREATE TEMP TABLE before AS SELECT s.ctid AS place, s.client_no, s.scope_id FROM synchro.client_scope s;
SELECT ep.pull('u-1');
SELECT bool_and(b.place = s.ctid) AS unwritten FROM before b JOIN synchro.client_scope s USING (client_no, scope_id);

-- A rebuild moves no checkpoint, neither its own scope's nor another's; the next pull acknowledges its own, and the other scope goes on where it was.
SAVEPOINT rebuilt;
SELECT ep.note(5, 'five', '{s,user:u}'), md5(string_agg(s::text, ',' ORDER BY client_no, scope_id)) AS places FROM synchro.client_scope s \gset
SELECT count(r) FROM ep.rebuild('u-1', 's', 2) r;
SELECT md5(string_agg(s::text, ',' ORDER BY client_no, scope_id)) = :'places' AS untouched FROM synchro.client_scope s;
SELECT ep.pull('u-1');
SELECT ep.ack('u-1', 's') LIKE 'transaction_end%' AS own;
ROLLBACK TO rebuilt;
-- Below the floor: rebuild, for that scope only, nothing acknowledged. At the floor: resumed.
SAVEPOINT s;
SELECT ep.note(5, 'five', '{s}'), ep.ack('u-1', 's') AS ack \gset
UPDATE synchro.scope SET floor_kind = 'transaction_end', floor_lsn = high_lsn WHERE scope_id = 's';
SELECT ep.pull('u-1');
SELECT ep.ack('u-1', 's') = :'ack' AS kept;
ROLLBACK TO s;
UPDATE synchro.scope SET floor_kind = 'transaction_end', floor_lsn = (SELECT commit_lsn FROM synchro.progress) WHERE scope_id = 's';
SELECT ep.pull('u-1');
ROLLBACK TO s;
-- A generation of the scope that moved on: rebuild, for that scope only.
UPDATE synchro.scope SET membership_generation = 2 WHERE scope_id = 's';
SELECT ep.pull('u-1');
ROLLBACK TO s;
UPDATE synchro.scope SET retention_generation = 2 WHERE scope_id = 's';
SELECT ep.pull('u-1');
ROLLBACK TO s;
UPDATE synchro.progress SET stream_generation = 2;
SELECT ep.pull('u-1');
ROLLBACK TO s;
ROLLBACK;
-- Every member of a cursor, changed alone and signed anew: forged or misbound is 400, obsolete rebuilds, and only a position or a time may differ.
BEGIN ISOLATION LEVEL REPEATABLE READ;
\set ECHO none
\i :fixture
\set ECHO all
SELECT ep.note(1, 'one', '{s}'), ep.note(2, 'two', '{s}'), synchro.synchro_register_shared_scope('s'), ep.connect('u-1') \gset
SELECT count(ep) FROM ep.rebuild('u-1', 's', 1) ep;
CREATE FUNCTION ep.mutate(p_purpose text, p_token text, p_member text) RETURNS text LANGUAGE sql AS $$
  SELECT synchro._token_sign(p_purpose, o - 'kid' || jsonb_build_object(p_member, CASE jsonb_typeof(o -> p_member) WHEN 'number' THEN to_jsonb((o ->> p_member)::bigint + 1) ELSE to_jsonb(overlay(o ->> p_member PLACING CASE right(o ->> p_member, 1) WHEN '1' THEN '2' ELSE '1' END FROM length(o ->> p_member) FOR 1)) END))
    FROM synchro._token_open(p_purpose, p_token) o $$;
SELECT scopes -> 's' ->> 'cursor' AS cursor FROM ep.client \gset
SELECT m, (SELECT CASE r.status WHEN 200 THEN 'rebuild ' || (r.body ->> 'rebuild') ELSE r.status || ' ' || (r.body -> 'error' ->> 'code') END
             FROM ep.call('u-1', 'pull', jsonb_build_object('scopes', jsonb_build_object('s', jsonb_build_object('cursor', ep.mutate('cursor', :'cursor', m))))) r)
  FROM jsonb_object_keys(synchro._token_open('cursor', :'cursor') - 'kid') m ORDER BY 1;
-- The same with a continuation: what does not come from this attempt is 400, what comes from another one restarts.
SELECT r.body ->> 'cursor' AS cursor FROM ep.call('u-1', 'rebuild', '{"scope":"s","limit":1,"cursor":"?"}') r \gset
SELECT m, (SELECT CASE r.status WHEN 200 THEN 'page' ELSE r.status || ' ' || (r.body -> 'error' ->> 'code') END
             FROM ep.call('u-1', 'rebuild', jsonb_build_object('scope', 's', 'limit', 1, 'cursor', ep.mutate('rebuild', :'cursor', m))) r)
  FROM jsonb_object_keys(synchro._token_open('rebuild', :'cursor') - 'kid') m ORDER BY 1;
SELECT status FROM ep.call('u-1', 'rebuild', jsonb_build_object('scope', 's', 'limit', 1, 'cursor', :'cursor'));
ROLLBACK;
