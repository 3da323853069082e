-- Requests that are refused before anything is done, and the limits.
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set fixture :abs_srcdir /fixtures/push.sql
\i :fixture
\set ECHO all
CREATE FUNCTION pt.raw(p_request text) RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT concat(r.status, ' ', coalesce(r.body::json#>>'{error,code}', concat(json_array_length(r.body::json->'accepted'), ' accepted ', json_array_length(r.body::json->'rejected'), ' rejected')))
    FROM synchro.synchro_push('ann', p_request) r
$$;
CREATE FUNCTION pt.one(p_change text, p_more jsonb DEFAULT '{}', p_op text DEFAULT 'insert') RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT pt.raw(pt.request('client of ann', p_change, ARRAY[(pt.m(p_change, p_op, 'shop.note', to_json(pt.id(p_change)), CASE WHEN p_op <> 'delete' THEN '{"title": "x"}'::json END)::jsonb || p_more)::json]))
$$;
-- the matrix of operations
SELECT pt.one('insert with base', '{"base_version": "x"}');
SELECT pt.one('insert without columns', '{"columns": null}');
SELECT pt.one('update of nothing', '{"columns": {}}', 'update');
SELECT pt.one('update without base', '{"base_version": null}', 'update');
SELECT pt.one('delete with columns', '{"columns": {}}', 'delete');
SELECT pt.one('unknown operation', '{"op": "upsert"}');
SELECT pt.one('unknown member', '{"x": 1}');
SELECT pt.one('two keys', '{"pk": {"a": 1, "b": 2}}');
SELECT pt.one('no key', '{"pk": {}}');
SELECT pt.one('id', '{"mutation_id": "X"}');
SELECT pt.one('clock', '{"client_version": "2026-01-01T00:00:00Z"}');
-- the envelope
SELECT pt.raw(pt.request('client of ann', 'e1', '{}'));
SELECT pt.raw(pt.request('client of ann', 'e2', ARRAY[pt.m('e2', 'insert', 'shop.note', to_json(pt.id('e2')), '{}')], '{"atomic": false}'));
SELECT pt.raw(pt.request('client of ann', 'e3', ARRAY[pt.m('e3', 'insert', 'shop.note', to_json(pt.id('e3')), '{}')], '{"user_id": "bob"}'));
SELECT pt.raw(pt.request('client of ann', 'e4', ARRAY[pt.m('e4', 'insert', 'shop.note', to_json(pt.id('e4')), '{}'), pt.m('e4', 'insert', 'shop.note', to_json(pt.id('e5')), '{}')]));
SELECT pt.raw('{');
-- a client that never connected, and nobody at all
SELECT pt.raw(pt.request('nobody', 'e7', ARRAY[pt.m('e7', 'insert', 'shop.note', to_json(pt.id('e7')), '{}')])), (SELECT count(*) FROM synchro.client WHERE client_id = pt.id('nobody')::text);
SELECT r.status, r.body::json#>>'{error,code}' FROM synchro.synchro_push('', pt.request('client of ann', 'e8', ARRAY[pt.m('e8', 'insert', 'shop.note', to_json(pt.id('e8')), '{}')])) r;
SELECT pt.raw(replace(pt.request('client of ann', 'e6', ARRAY[pt.m('e6', 'insert', 'shop.note', to_json(pt.id('e6')), '{}')]), '"batch_id"', '"batch_id": null, "batch_id"'));
-- limits: 1000 mutations, 256 columns, 65 536 octets a mutation, 1 048 576 octets a body
CREATE FUNCTION pt.many(p_label text, p_n int) RETURNS text LANGUAGE sql AS $$
  SELECT pt.request('client of ann', p_label, array_agg((m || jsonb_build_object('mutation_id', pt.id(p_label || g), 'pk', jsonb_build_object(f, pt.id(p_label || g))))::json))
    FROM generate_series(1, p_n) g, (SELECT pt.m('x', 'insert', 'shop.note', '1', '{}')::jsonb AS m, pt.field('shop.note', 'id') AS f) x
$$;
SELECT pt.raw(pt.many('1000 mutations', 1000));
SELECT pt.raw(pt.many('1001 mutations', 1001));
CREATE FUNCTION pt.columns(p_n int) RETURNS jsonb LANGUAGE sql AS $$SELECT jsonb_build_object('columns', jsonb_object_agg('f' || g, g)) FROM generate_series(1, p_n) g$$;
SELECT pt.one('256 columns', pt.columns(256));
SELECT pt.one('257 columns', pt.columns(257));
SELECT pt.one('large mutation', jsonb_build_object('columns', jsonb_build_object('f', repeat('x', 65000))));
SELECT pt.one('too large mutation', jsonb_build_object('columns', jsonb_build_object('f', repeat('x', 65537))));
SELECT pt.raw(rpad(q, 1048576)) AS one_mib, pt.raw(rpad(q, 1048577)) AS one_more
  FROM pt.request('client of ann', 'body', ARRAY[pt.m('body', 'insert', 'shop.note', to_json(pt.id('body')), '{}')]) q;
-- the limit on a body holds for its canonical form too, in which 1e20 has 21 digits
SELECT n, length(q) < 300000 AS raw, pt.raw(q)
  FROM (VALUES (19), (20)) v(n), LATERAL (SELECT replace(pt.request('client of ann', 'digits' || n, array_agg(pt.m('digits' || n || '-' || g, 'insert', 'shop.note', to_json(pt.id('digits' || g)), '{"title": "DIGITS"}'))),
                                                         '"DIGITS"', '[1e20' || repeat(',1e20', 2399) || ']') FROM generate_series(1, n) g) r(q);
-- nothing refused has left anything behind
SELECT count(*) FROM synchro.push_batch;
