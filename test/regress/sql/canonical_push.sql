-- Fingerprints: the wire form and the list form of a batch give the same octets; every broken rule is refused.
CREATE FUNCTION pg_temp.batch(p_change jsonb DEFAULT '{}', p_drop text DEFAULT '', p_mutation jsonb DEFAULT '{}', p_mutation_drop text DEFAULT '') RETURNS json LANGUAGE sql AS $$
  SELECT (jsonb_build_object('client_id', 'c', 'client_generation', 7, 'batch_id', '00000000-0000-4000-8000-000000000010',
    'schema', jsonb_build_object('version', 1, 'hash', repeat('a9', 32)),
    'mutations', jsonb_build_array(
      jsonb_build_object('mutation_id', '00000000-0000-4000-8000-000000000001', 'table', 't', 'pk', '{"id":"k"}'::jsonb, 'op', 'update', 'base_version', 'v',
        'authored_schema', jsonb_build_object('version', 1, 'hash', repeat('a9', 32)), 'client_version', '2024-02-29T12:34:56.123456Z',
        'columns', '{"b":{"z":1.0,"a":[null]},"a":1e2}'::jsonb) - p_mutation_drop || p_mutation,
      jsonb_build_object('mutation_id', '00000000-0000-4000-8000-000000000002', 'table', 't', 'pk', '{"id":1}'::jsonb, 'op', 'delete', 'base_version', 'v',
        'authored_schema', jsonb_build_object('version', 2, 'hash', repeat('a8', 32)), 'client_version', '2024-02-29T12:34:56.123456Z')))
    - p_drop || p_change)::json $$;
CREATE FUNCTION pg_temp.refused(p_batch json, p_user text DEFAULT 'u') RETURNS text LANGUAGE plpgsql AS $$
DECLARE v_detail text;
BEGIN
  PERFORM synchro._batch_fingerprint(p_user, p_batch);
  RETURN 'accepted';
EXCEPTION WHEN SQLSTATE 'SY001' THEN
  GET STACKED DIAGNOSTICS v_detail = PG_EXCEPTION_DETAIL;
  RETURN v_detail;
END $$;

-- Spelled out with the server's own functions.
SELECT synchro._batch_fingerprint('u', pg_temp.batch()) = sha256('synchro:v3:push-batch-fingerprint:v1'::bytea || '\x00' || convert_to(format(
  '["batch-v1","u","c","7","00000000-0000-4000-8000-000000000010",["1","%1$s"],[["mutation-v1","00000000-0000-4000-8000-000000000001","t",["id","k"],["1","%1$s"],"update",[1,"v"],'
  '"2024-02-29T12:34:56.123456Z",[1,[["a",100],["b",{"a":[null],"z":1}]]]],["mutation-v1","00000000-0000-4000-8000-000000000002","t",["id",1],["2","%2$s"],"delete",[1,"v"],'
  '"2024-02-29T12:34:56.123456Z",[0]]]]', repeat('a9', 32), repeat('a8', 32)), 'UTF8')) AS batch,
  synchro._mutation_fingerprint('u', 'c', pg_temp.batch()->'mutations'->1) = sha256('synchro:v3:push-mutation-fingerprint:v1'::bytea || '\x00' || convert_to(format(
  '["mutation-scope-v1","u","c",["mutation-v1","00000000-0000-4000-8000-000000000002","t",["id",1],["2","%s"],"delete",[1,"v"],"2024-02-29T12:34:56.123456Z",[0]]]', repeat('a8', 32)), 'UTF8')) AS mutation;

-- The list form of the same batch.
SELECT synchro._batch_fingerprint('u', b) = synchro._batch_fingerprint('u', replace(replace(replace(replace(replace(b::text, '"schema"', '"request_schema"'), '"table"', '"table_id"'), '"op"', '"operation"'),
         '"pk": {"id": "k"}', '"pk": {"field_id": "id", "value": "k"}'), '"pk": {"id": 1}', '"pk": {"value": 1, "field_id": "id"}')::jsonb::json, true) AS same
FROM (SELECT pg_temp.batch(p_mutation => '{"op":"delete"}', p_mutation_drop => 'columns') AS b) x;

-- Spelling does not matter, content does.
SELECT count(DISTINCT synchro._batch_fingerprint(u, b)) AS distinct_fingerprints, count(*) FROM (VALUES
  ('u', pg_temp.batch()), ('u', replace(pg_temp.batch()::text, '100', '1E2')::json), ('u', replace(pg_temp.batch()::text, '"t"', '"\u0074"')::json),
  ('v', pg_temp.batch()), ('u', pg_temp.batch('{"atomic":true}')), ('u', pg_temp.batch('{"client_generation":8}')), ('u', pg_temp.batch('{"client_id":"d"}')),
  ('u', pg_temp.batch(p_mutation => '{"base_version":"w"}')), ('u', pg_temp.batch(p_mutation => '{"columns":{"a":null}}')), ('u', pg_temp.batch(p_mutation => '{"columns":{"a":0}}'))) x(u, b);

SELECT change, pg_temp.refused(pg_temp.batch(change::jsonb)) FROM unnest(ARRAY['{"atomic":true}', '{"atomic":false}', '{"atomic":null}', '{"extra":1}', '{"client_id":""}', '{"client_id":1}', '{"client_generation":0}',
  '{"client_generation":"7"}', '{"client_generation":1.5}', '{"client_generation":9007199254740992}', '{"batch_id":"00000000-0000-0000-0000-000000000000"}', '{"batch_id":"00000000-0000-4000-8000-00000000000A"}',
  '{"batch_id":"000000000000400080000000000000100000"}', '{"schema":{"version":0,"hash":""}}', '{"schema":null}', '{"mutations":[]}', '{"mutations":{}}', '{"mutations":[1]}']) WITH ORDINALITY c(change, n) ORDER BY n;
SELECT member, pg_temp.refused(pg_temp.batch(p_drop => member)) FROM unnest('{client_id,client_generation,batch_id,schema,mutations}'::text[]) member;
SELECT member, pg_temp.refused(pg_temp.batch(p_mutation_drop => member)) FROM unnest('{mutation_id,table,pk,authored_schema,op,client_version,base_version,columns}'::text[]) member;
SELECT change, pg_temp.refused(pg_temp.batch(p_mutation => change::jsonb)) FROM unnest(ARRAY['{"extra":1}', '{"mutation_id":"00000000-0000-4000-8000-000000000002"}', '{"mutation_id":1}', '{"table":""}', '{"pk":{}}', '{"pk":{"a":1,"b":2}}',
  '{"pk":[]}', '{"op":"upsert"}', '{"op":"insert"}', '{"op":"delete"}', '{"base_version":""}', '{"base_version":null}', '{"columns":{}}', '{"columns":null}', '{"columns":[]}', '{"client_version":"2024-02-30T12:34:56.123456Z"}',
  '{"client_version":"2024-02-29T12:34:56Z"}', '{"client_version":null}', '{"authored_schema":{"version":1}}', '{"authored_schema":{"version":1,"hash":"A9"}}', '{"pk":{"":1}}', '{"columns":{"":1}}']) WITH ORDINALITY c(change, n) ORDER BY n;
SELECT pg_temp.refused(pg_temp.batch(p_mutation => '{"op":"insert","columns":{}}', p_mutation_drop => 'base_version')) AS insert_of_nothing,
       pg_temp.refused(pg_temp.batch('{"atomic":true}', p_mutation => '{"pk":{"id":1.0}}')) AS atomic_row_twice,
       pg_temp.refused(pg_temp.batch(p_mutation => '{"pk":{"id":1.0}}')) AS row_twice;
SELECT pg_temp.refused(pg_temp.batch(), '') AS empty_user, pg_temp.refused(pg_temp.batch(), repeat('u', 255)) AS user_255, pg_temp.refused(pg_temp.batch(), repeat('u', 256)) AS user_256;

-- Limits: 256 columns, 65536 octets of a mutation, 1000 mutations.
SELECT n, pg_temp.refused(pg_temp.batch(p_mutation => jsonb_build_object('columns', (SELECT jsonb_object_agg(i, 0) FROM generate_series(1, n) i)))) FROM unnest(ARRAY[256, 257]) n;
SELECT n, pg_temp.refused(pg_temp.batch(p_mutation => jsonb_build_object('columns', jsonb_build_object('a', repeat('x', n))))) FROM unnest(ARRAY[65000, 65536]) n;
SELECT n, pg_temp.refused(pg_temp.batch(jsonb_build_object('mutations', (SELECT jsonb_agg((pg_temp.batch()->'mutations'->1)::jsonb
  || jsonb_build_object('mutation_id', '00000000-0000-4000-8000-' || lpad(i::text, 12, '0'))) FROM generate_series(1, n) i)))) FROM unnest(ARRAY[1000, 1001]) n;
