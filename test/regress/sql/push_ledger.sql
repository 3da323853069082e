-- Batches and mutations are executed once; the order of the gates.
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set fixture :abs_srcdir /fixtures/push.sql
\i :fixture
\set ECHO all
CREATE FUNCTION pt.raw(p_user text, p_request text) RETURNS TABLE (status int, code text, more text) LANGUAGE sql VOLATILE AS $$
  SELECT r.status, coalesce(r.body::json#>>'{error,code}', 'ok'), (r.body::jsonb->'error') - 'message' - 'code' FROM synchro.synchro_push(p_user, p_request) r
$$;
CREATE FUNCTION pt.state() RETURNS text LANGUAGE sql STABLE AS $$
  SELECT md5(concat((SELECT string_agg(b::text, ',' ORDER BY batch_id) FROM synchro.push_batch b), (SELECT string_agg(m::text, ',' ORDER BY mutation_id) FROM synchro.push_mutation m),
    (SELECT string_agg(c::text, ',' ORDER BY client_no) FROM synchro.client c), (SELECT string_agg(f::text, ',' ORDER BY f::text) FROM synchro.push_fence f),
    (SELECT string_agg(n::text || xmin, ',' ORDER BY id) FROM shop.note n)))
$$;
CREATE TABLE pt.req AS SELECT pt.request('client of ann', 'b1', ARRAY[pt.m('m1', 'insert', 'shop.note', to_json(pt.id('n1')), '{"title": "one"}'),
  pt.m('m2', 'insert', 'shop.note', to_json(pt.id('n2')), '{"qty": "wrong"}')]) AS q;
SELECT q FROM pt.req \gset
SELECT status, body AS first FROM synchro.synchro_push('ann', :'q') \gset
SELECT :status AS status;
-- the same batch: the same bytes, and nothing else
SELECT pt.state() AS before \gset
SELECT status, body = :'first' AS same FROM synchro.synchro_push('ann', :'q');
SELECT status, body = :'first' AS same FROM synchro.synchro_push('ann', jsonb_pretty(:'q'::jsonb), '{"roles": ["admin"]}');
SELECT pt.state() = :'before' AS unchanged;
-- another content under the same id: order, a value, null or absence, the client's clock
SELECT * FROM pt.raw('ann', jsonb_set(:'q', '{mutations}', jsonb_build_array(:'q'::jsonb#>'{mutations,1}', :'q'::jsonb#>'{mutations,0}'))::text);
SELECT * FROM pt.raw('ann', replace(:'q', '"one"', '"two"'));
SELECT * FROM pt.raw('ann', replace(:'q', '"one"', 'null'));
SELECT * FROM pt.raw('ann', replace(:'q', '05.000006Z', '05.000007Z'));
SELECT * FROM pt.raw('ann', jsonb_set(:'q', '{client_generation}', '2')::text);
SELECT pt.state() = :'before' AS unchanged;
-- a completed mutation in a new batch contributes its outcome; in another form it is a conflict
SELECT list, code, state FROM pt.push('ann', 'b2', pt.m('m3', 'insert', 'shop.note', to_json(pt.id('n3')), '{}'),
  pt.m('m1', 'insert', 'shop.note', to_json(pt.id('n1')), '{"title": "one"}'), pt.m('m2', 'insert', 'shop.note', to_json(pt.id('n2')), '{"qty": "wrong"}'));
SELECT (SELECT accepted_write_epoch FROM synchro.client WHERE user_id = 'ann') AS epoch, (SELECT count(*) FROM synchro.push_mutation) AS mutations;
SELECT list, code FROM pt.push('ann', 'b3', pt.m('m4', 'insert', 'shop.note', to_json(pt.id('n4')), '{}'),
  pt.m('m1', 'insert', 'shop.note', to_json(pt.id('n1')), '{"title": "other"}'));
-- a batch of nothing but known or rejected mutations counts for nothing
SELECT list, code FROM pt.push('ann', 'b4', pt.m('m1', 'insert', 'shop.note', to_json(pt.id('n1')), '{"title": "one"}'),
  pt.m('m5', 'insert', 'shop.note', to_json(pt.id('n5')), '{"qty": "wrong"}'));
SELECT accepted_write_epoch FROM synchro.client WHERE user_id = 'ann';
-- ids are the client's own: bob's client may use the same
SELECT list, code FROM pt.push('bob', 'b1', pt.m('m1', 'insert', 'shop.note', to_json(pt.id('n6')), '{"title": "one"}'));
-- the generation gate, then the schema gate, then a blocked capture; a replay comes before them all
SELECT pt.state() AS before \gset
SELECT status, code, more FROM pt.raw('ann', pt.request('client of ann', 'g1', ARRAY[pt.m('g1', 'insert', 'shop.note', to_json(pt.id('g1')), '{}')],
  jsonb_build_object('client_generation', 2, 'schema', jsonb_build_object('version', 1, 'hash', repeat('a', 64)))));
SELECT status, code FROM pt.raw('ann', (pt.request('client of ann', 'g1', ARRAY[pt.m('g1', 'insert', 'shop.note', to_json(pt.id('g1')), '{}')])::jsonb - 'client_generation')::text);
SELECT status, code, more::jsonb->'current_schema' = pt.schema_ref()::jsonb AS current, more::jsonb->'received_schema' AS received, more::jsonb->'retryable' AS retryable
  FROM pt.raw('ann', pt.request('client of ann', 'g1', ARRAY[pt.m('g1', 'insert', 'shop.note', to_json(pt.id('g1')), '{}')],
  jsonb_build_object('schema', jsonb_build_object('version', 1, 'hash', repeat('a', 64)))));
INSERT INTO synchro.quarantine (stream_generation, commit_lsn, class) VALUES (1, '0/1', 'decode_failed');
SELECT * FROM pt.raw('ann', pt.request('client of ann', 'g1', ARRAY[pt.m('g1', 'insert', 'shop.note', to_json(pt.id('g1')), '{}')]));
UPDATE synchro.client SET client_generation = 2 WHERE user_id = 'ann';
SELECT status, body = :'first' AS same FROM synchro.synchro_push('ann', :'q');
UPDATE synchro.client SET client_generation = 1 WHERE user_id = 'ann';
DELETE FROM synchro.quarantine;
UPDATE synchro.client SET expired = true WHERE user_id = 'ann';
SELECT * FROM pt.raw('ann', pt.request('client of ann', 'g1', ARRAY[pt.m('g1', 'insert', 'shop.note', to_json(pt.id('g1')), '{}')]));
SELECT status, body = :'first' AS same FROM synchro.synchro_push('ann', :'q');
UPDATE synchro.client SET expired = false WHERE user_id = 'ann';
SELECT pt.state() = :'before' AS unchanged;
-- retirement precedes even a replay
BEGIN;
UPDATE synchro.client SET retired_at = now() WHERE user_id = 'ann';
SELECT status, code FROM pt.raw('ann', :'q');
ROLLBACK;
-- credential and client
SELECT status, code FROM pt.raw('bob', :'q');
SELECT status, code FROM pt.raw('', :'q');
SELECT status, code FROM pt.raw(NULL, :'q');
SELECT status, code FROM pt.raw('ann', jsonb_set(:'q', '{client_id}', '"00000000-0000-4000-8000-000000000001"')::text);
-- the client's generation has been seen
SELECT user_id, confirmed FROM synchro.client ORDER BY user_id;
