-- Evaluation of membership functions: sets, bounds, errors, identity, and what the evaluated code can't do.
SET client_min_messages = warning;
SET synchro.ddl_guard = off;
CREATE SCHEMA se;
CREATE ROLE se_app;
GRANT synchro_operator TO se_app;
GRANT CREATE, USAGE ON SCHEMA se TO se_app;
CREATE TABLE synchro_data.r_9000001 (c1 uuid PRIMARY KEY, c2 text[], c3 int);
CREATE VIEW synchro_projection.se_note AS SELECT c1 AS id, c2 AS owners, c3 AS n FROM synchro_data.r_9000001;
GRANT SELECT ON synchro_projection.se_note TO se_app;
INSERT INTO synchro_data.r_9000001 SELECT ('00000000-0000-4000-8000-' || lpad(i::text, 12, '0'))::uuid, ARRAY['user:u' || i], i FROM generate_series(1, 5) i;
CREATE SEQUENCE se.rel_no START 9000001;                -- a registration never changes: each is of another relation
CREATE FUNCTION se.key(i int) RETURNS text LANGUAGE sql IMMUTABLE AS $$SELECT '00000000-0000-4000-8000-' || lpad(i::text, 12, '0')$$;

-- Registers a function of that body, without any check; evaluates; shows how it ended.
CREATE FUNCTION se.register(p_query text, p_composition text DEFAULT 'multi_scope', p_fanout int DEFAULT 3) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  DROP FUNCTION IF EXISTS se.f(uuid);
  INSERT INTO synchro.relation (rel_no, physical_schema, physical_relation, relation_oid) OVERRIDING SYSTEM VALUE
  SELECT n, 'se', 'note' || n, 4000000000 + n FROM nextval('se.rel_no') n;
  SET LOCAL ROLE se_app;
  EXECUTE 'CREATE FUNCTION se.f(p_row_key uuid) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro BEGIN ATOMIC ' || p_query || '; END';
  RESET ROLE;
  INSERT INTO synchro.registration (generation, rel_no, since, kind, composition, push_policy, key_column, key_attnum, key_type, pk_type, membership_function,
                                    membership_twin, membership_hash, max_scope_fanout, sync_columns, text_columns)
  SELECT g, currval('se.rel_no'), g, 'synced', p_composition, 'read_only', 'id', 1, 'uuid'::regtype, 'string', f, synchro._make_twin(f, 'se_twin'), synchro._definition_hash(f),
         p_fanout, '{}', '{}' FROM (SELECT max(generation) FROM synchro.registry_generation) m(g), (SELECT oid FROM pg_proc WHERE proname = 'f' AND pronamespace = 'se'::regnamespace) p(f);
END
$$;
CREATE FUNCTION se.eval(VARIADIC p_keys int[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_result text;
  v_detail text;
BEGIN
  SELECT string_agg(ord || '=' || scope_id, ' ' ORDER BY n) INTO v_result
    FROM (SELECT row_number() OVER () AS n, e.* FROM synchro._evaluate_membership(currval('se.rel_no')::int, (SELECT max(generation) FROM synchro.registry_generation),
                                                         ARRAY(SELECT se.key(k) FROM unnest(p_keys) WITH ORDINALITY u(k, o) ORDER BY o)) e) e;
  RETURN coalesce(v_result, 'none');
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS v_detail = PG_EXCEPTION_DETAIL;
  RETURN concat_ws(' | ', SQLSTATE, SQLERRM, nullif(v_detail, ''));
END
$$;
CREATE FUNCTION se.try(p_query text, p_composition text DEFAULT 'multi_scope', p_fanout int DEFAULT 3) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM se.register(p_query, p_composition, p_fanout);
  RETURN se.eval(1, 2);
END
$$;
SELECT se.register('SELECT o FROM synchro_projection.se_note, unnest(owners) o WHERE id = p_row_key');
SELECT se.eval(3, 1, 99, 3), se.eval(VARIADIC '{}'), se.eval(99);
-- The twin is what the planner inlines; the registered form is not.
SET ROLE se_app;
EXPLAIN (COSTS OFF) SELECT k.ord, f.scope FROM unnest('{}'::uuid[]) WITH ORDINALITY k(key, ord), LATERAL synchro_twin.se_twin(k.key) f(scope);
EXPLAIN (COSTS OFF) SELECT k.ord, f.scope FROM unnest('{}'::uuid[]) WITH ORDINALITY k(key, ord), LATERAL se.f(k.key) f(scope);
RESET ROLE;
SELECT proacl, proconfig, proowner::regrole, has_function_privilege('synchro_worker', oid, 'EXECUTE') FROM pg_proc WHERE proname = 'se_twin';

-- Sets: duplicates collapse, order is that of octets, bounds are exact.
SELECT se.try('VALUES (''b''), (''a''), (''b''), (''Z''), (''a'')');
SELECT se.try('VALUES (''a''), (''b''), (''c'')'), se.try('VALUES (''a''), (''b''), (''c''), (''d'')');
SELECT se.try('SELECT ''a'' FROM generate_series(1, 1000)'), se.try('SELECT ''s'' || i % 3 FROM generate_series(1, 1000) i'), se.try('SELECT ''s'' || i % 4 FROM generate_series(1, 1000) i');
SELECT se.try('VALUES (''a''), (''a'')', 'single_scope'), se.try('VALUES (''a''), (''b'')', 'single_scope');
SELECT left(se.try('SELECT ''s'' || i FROM generate_series(1, 10000) i', 'multi_scope', 10000), 40), se.try('SELECT ''s'' || i FROM generate_series(1, 10001) i', 'multi_scope', 10000);
SELECT se.try('SELECT NULL::text'), se.try('SELECT '''''), se.try('SELECT E'' \t\n'''), se.try('SELECT U&''\FDD0''');
SELECT right(se.try('SELECT repeat(''x'', 255)'), 3), se.try('SELECT repeat(''x'', 256)'), se.try('SELECT repeat(''é'', 128)');

-- Rows that come out of order (a hash join over many keys) are sorted by position.
SELECT se.register('SELECT o FROM synchro_projection.se_note, unnest(owners) o WHERE id = p_row_key');
INSERT INTO synchro_data.r_9000001 SELECT se.key(i)::uuid, ARRAY['b' || i, 'a' || i], i FROM generate_series(6, 5000) i;
ANALYZE synchro_data.r_9000001;
WITH k AS (SELECT array_agg(se.key(i) ORDER BY md5(i::text)) AS keys, array_agg(i ORDER BY md5(i::text)) AS numbers FROM generate_series(1, 5000) i),
     e AS (SELECT row_number() OVER () AS n, e.* FROM k, synchro._evaluate_membership(currval('se.rel_no')::int, (SELECT max(generation) FROM synchro.registry_generation), keys) e)
SELECT count(*), bool_and(e.scope_id ~ ('^(user:u|a|b)' || k.numbers[e.ord] || '$')) AS right_rows,
       count(*) = count(DISTINCT (ord, scope_id)) AND bool_and(n = o) AS in_order
  FROM k, (SELECT e.*, row_number() OVER (ORDER BY ord, scope_id COLLATE "C") AS o FROM e) e;
DELETE FROM synchro_data.r_9000001 WHERE c3 > 5;

-- An expression that the set form evaluates for rows no call would: evaluated again, call by call.
SELECT se.register('SELECT ''n:'' || n FROM synchro_projection.se_note WHERE id = p_row_key AND 10 / (n - 1) > 0');
SELECT se.eval(2, 3), se.eval(1, 2);
-- Errors of the function name its SQLSTATE, no value; keys that are none; lists that are none.
SELECT se.try('SELECT (o || ''secret'')::int::text FROM synchro_projection.se_note, unnest(owners) o WHERE id = p_row_key');
SELECT synchro._evaluate_membership(currval('se.rel_no')::int, max(generation), '{secret}') FROM synchro.registry_generation;
SELECT synchro._evaluate_membership(currval('se.rel_no')::int, max(generation), '{NULL}') FROM synchro.registry_generation;
SELECT synchro._evaluate_membership(currval('se.rel_no')::int, -1, '{}');
-- Conditions of the server are no failures of the function.
SELECT se.register('SELECT ''a'' || count(*) FROM generate_series(1, 1000000000)');
SET statement_timeout = '50ms';
DO $$BEGIN PERFORM se.eval(1); EXCEPTION WHEN query_canceled THEN RAISE WARNING 'canceled'; END$$;
RESET statement_timeout;

-- Who it runs as, and what it cannot do: it reads with its owner's rights only, read-only, without the session's settings.
SELECT se.try('SELECT current_user::text || '' '' || current_setting(''TimeZone'') || '' '' || current_setting(''search_path'') || '' '' || current_setting(''jit'')');
SET timezone = 'Asia/Kathmandu';
SELECT se.try('SELECT ''2020-01-01 00:00:00+00''::timestamptz::text');
RESET timezone;
-- (No registered function may call such functions: they stand for whatever a view or a type could run.)
CREATE FUNCTION se.attempt(p_sql text) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  EXECUTE p_sql;
  RETURN 'done';
EXCEPTION WHEN OTHERS THEN
  RETURN SQLSTATE;
END
$$;
CREATE FUNCTION se.probe() RETURNS SETOF text LANGUAGE sql STABLE AS $$
  SELECT e || ': ' || se.attempt(e) FROM unnest(ARRAY['SELECT secret FROM synchro.secret_key', 'SET ROLE synchro_owner', 'RESET ROLE', 'SET SESSION AUTHORIZATION DEFAULT', 'LISTEN x',
    'PREPARE x AS SELECT 1', 'DECLARE x CURSOR WITH HOLD FOR SELECT 1', 'CREATE TEMP TABLE x ()', 'SELECT 1']) e
$$;
SELECT se.register('SELECT * FROM se.probe()', 'multi_scope', 20);
SELECT unnest(string_to_array(se.eval(1), ' 1='));
SELECT current_user = session_user AS back, current_setting('search_path') AS path;

-- The function, its copy or its owner's rights change after registration.
SELECT se.register('SELECT ''a''');
SELECT se.eval(1);
CREATE OR REPLACE FUNCTION se.f(p_row_key uuid) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro BEGIN ATOMIC SELECT 'b'; END;
SELECT se.eval(1);
SELECT se.register('SELECT ''a''');
SELECT se.eval(1);
CREATE OR REPLACE FUNCTION synchro_twin.se_twin(p_row_key uuid) RETURNS SETOF text LANGUAGE sql STABLE BEGIN ATOMIC SELECT 'b'; END;
SELECT se.eval(1);
SELECT se.register('SELECT ''a''');
ALTER FUNCTION synchro_twin.se_twin(uuid) SECURITY DEFINER;
SELECT se.eval(1);
SELECT se.register('SELECT ''a''');
ALTER FUNCTION se.f(uuid) COST 7;
SELECT se.eval(1);
SELECT se.register('SELECT o FROM synchro_projection.se_note, unnest(owners) o WHERE id = p_row_key');
SELECT se.eval(1);
REVOKE SELECT ON synchro_projection.se_note FROM se_app;
SELECT se.eval(1);
GRANT SELECT ON synchro_projection.se_note TO se_app;
SELECT se.eval(1);
DROP FUNCTION se.f(uuid);
SELECT se.eval(1);
-- The copy went with the function.
SELECT count(*) FROM pg_proc WHERE proname = 'se_twin';
DELETE FROM synchro.registration WHERE rel_no >= 9000001;
DELETE FROM synchro.relation WHERE rel_no >= 9000001;
DROP VIEW synchro_projection.se_note;
DROP TABLE synchro_data.r_9000001;
DROP SCHEMA se CASCADE;
DROP OWNED BY se_app;
DROP ROLE se_app;
