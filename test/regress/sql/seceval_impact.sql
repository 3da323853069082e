-- Evaluation of impact functions: keys in canonical form, bounds, errors, identity, and what the evaluated code can't do.
SET client_min_messages = warning;
CREATE SCHEMA si;
CREATE ROLE si_app;
GRANT synchro_operator TO si_app;
GRANT CREATE, USAGE ON SCHEMA si TO si_app;
CREATE TABLE synchro_data.r_9100001 (c1 int PRIMARY KEY, c2 int);
CREATE INDEX ON synchro_data.r_9100001 (c2);
CREATE VIEW synchro_projection.si_task AS SELECT c1 AS id, c2 AS team FROM synchro_data.r_9100001;
GRANT SELECT ON synchro_projection.si_task TO si_app;
INSERT INTO synchro_data.r_9100001 SELECT i, i % 3 FROM generate_series(1, 9) i;
CREATE TABLE si.padded (id char(4) PRIMARY KEY);
CREATE SEQUENCE si.rel_no START 9100001;                -- a registration never changes: each is of another target
CREATE FUNCTION si.table_id(n bigint) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$SELECT ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid$$;

-- Registers an impact function of that body, without any check. {ref} stands for what every reference begins with: {id} and a pk_type.
CREATE FUNCTION si.register(p_query text, p_limit int DEFAULT 5, p_key regtype DEFAULT 'int', p_table oid DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_no  int := nextval('si.rel_no');
  v_sql text := replace(replace(p_query, '{ref}', format('{id}, %L', synchro._key_type(p_key))), '{id}', quote_literal(si.table_id(v_no)));
BEGIN
  DROP FUNCTION IF EXISTS si.f(jsonb, jsonb);
  INSERT INTO synchro.relation (rel_no, table_id, physical_schema, physical_relation, relation_oid) OVERRIDING SYSTEM VALUE
  VALUES (v_no, si.table_id(v_no), 'si', 'task' || v_no, coalesce(p_table, 4100000000::oid::bigint + v_no));
  SET LOCAL ROLE si_app;
  EXECUTE 'CREATE FUNCTION si.f(p_old_row jsonb, p_new_row jsonb) RETURNS SETOF synchro.synchro_row_ref LANGUAGE sql STABLE SET search_path = pg_catalog, synchro BEGIN ATOMIC ' || v_sql || '; END';
  RESET ROLE;
  INSERT INTO synchro.registration (generation, rel_no, since, kind, composition, push_policy, key_column, key_attnum, key_type, pk_type, membership_function,
                                    membership_hash, max_scope_fanout, sync_columns, text_columns)
  SELECT max(generation), v_no, max(generation), 'synced', 'multi_scope', 'read_only', 'id', 1, p_key, synchro._key_type(p_key), 0, '', 8, '{}', '{}' FROM synchro.registry_generation;
  INSERT INTO synchro.membership_dependency (generation, target_rel_no, source_rel_no, impact_function, impact_twin, impact_hash, source_attnums, max_impact_rows)
  SELECT max(generation), v_no, v_no, f, synchro._make_twin(f, 'si_twin'), synchro._definition_hash(f), '{2}', p_limit
    FROM synchro.registry_generation, (SELECT oid FROM pg_proc WHERE proname = 'f' AND pronamespace = 'si'::regnamespace) p(f) GROUP BY f;
END
$$;
CREATE FUNCTION si.eval(p_old jsonb[] DEFAULT '{NULL}', p_new jsonb[] DEFAULT '{NULL}') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_result text;
  v_detail text;
  v_no     int := currval('si.rel_no');
BEGIN
  SELECT string_agg(ord || '=' || quote_ident(key), ' ' ORDER BY n) INTO v_result
    FROM (SELECT row_number() OVER () AS n, e.* FROM synchro._evaluate_impact((SELECT max(generation) FROM synchro.registry_generation), v_no, v_no, p_old, p_new) e) e;
  RETURN coalesce(v_result, 'none');
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS v_detail = PG_EXCEPTION_DETAIL;
  RETURN concat_ws(' | ', SQLSTATE, SQLERRM, nullif(v_detail, ''));
END
$$;
CREATE FUNCTION si.try(p_query text, p_limit int DEFAULT 5, p_key regtype DEFAULT 'int', p_table oid DEFAULT NULL) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM si.register(p_query, p_limit, p_key, p_table);
  RETURN si.eval();
END
$$;

-- Images that are absent are null; the old and the new image both count, and what both name counts once.
SELECT si.register('SELECT {ref}, t.id::text FROM synchro_projection.si_task t WHERE t.team IN ((p_old_row->>''team'')::int, (p_new_row->>''team'')::int)', 6);
SELECT si.eval('{NULL}', '{"{\"team\": 1}"}') AS inserted, si.eval('{"{\"team\": 2}"}', '{NULL}') AS deleted, si.eval('{"{\"team\": 1}"}', '{"{\"team\": 1}"}') AS unmoved;
SELECT si.eval('{"{\"team\": 1}",NULL,"{\"team\": 7}"}', '{"{\"team\": 0}","{\"team\": 2}",NULL}') AS several, si.eval('{}', '{}') AS nothing;
-- The planner inlines the copy; the registered form it does not.
SET ROLE si_app;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT k.ord, f.table_id, f.pk_type, f.pk_value
  FROM ROWS FROM (unnest('{}'::jsonb[]), unnest('{}'::jsonb[])) WITH ORDINALITY k(a, b, ord), LATERAL synchro_twin.si_twin(k.a, k.b) f;
EXPLAIN (COSTS OFF) SELECT f FROM si.f(NULL, NULL) f;
RESET enable_seqscan;
RESET ROLE;
SELECT proacl, proconfig, proowner::regrole FROM pg_proc WHERE proname = 'si_twin';
-- Many changes at once, in order; a hash join is right too.
SELECT count(*), count(DISTINCT ord) AS ords, bool_and(key::int % 3 = (ord - 1) % 3) AS right_rows, array_agg(n) = array_agg(n ORDER BY ord, key COLLATE "C") AS in_order
  FROM (SELECT row_number() OVER () AS n, e.* FROM (SELECT array_agg(jsonb_build_object('team', i % 3) ORDER BY i) AS a FROM generate_series(0, 2999) i) a,
        synchro._evaluate_impact((SELECT max(generation) FROM synchro.registry_generation), currval('si.rel_no')::int, currval('si.rel_no')::int, array_fill(NULL::jsonb, ARRAY[3000]), a) e) e;

-- The bound is exact, for each change alone, and of distinct rows.
SELECT si.register('SELECT {ref}, i::text FROM generate_series(1, (p_new_row->>''n'')::int) i, generate_series(1, 3) x', 5);
SELECT si.eval('{NULL}', '{"{\"n\": 5}"}'), si.eval('{NULL,NULL}', '{"{\"n\": 5}","{\"n\": 4}"}'), si.eval('{NULL,NULL}', '{"{\"n\": 1}","{\"n\": 6}"}');
SELECT length(si.try('SELECT {ref}, i::text FROM generate_series(1, 1000) i', 1000)), si.try('SELECT {ref}, i::text FROM generate_series(1, 1001) i', 1000);
-- It ends a flood: without it this would take forever.
SELECT si.try('SELECT {ref}, (i + x)::text FROM generate_series(1, 100000) i, generate_series(1, 100000) x', 1000);

-- What a reference must say.
SELECT si.try('SELECT ''00000000-0000-4000-8000-000000000001'', ''int'', ''1''') AS other_table, si.try('SELECT NULL, ''int'', ''1''') AS no_table,
       si.try('SELECT {ref}, NULL') AS no_value, si.try('SELECT NULL::synchro.synchro_row_ref') AS null_row, si.try('SELECT (r).* FROM (SELECT ROW({ref}, ''1'')::synchro.synchro_row_ref AS r) x') AS composite;
SELECT t, si.try(format('SELECT {id}, %L, ''1''', t)) FROM unnest('{int,int64,string,INT,""}'::text[]) t;
SELECT v, si.try(format('SELECT {ref}, %L', v)) FROM unnest(ARRAY['7', '-7', '07', '+7', ' 7', '7 ', '2147483647', '2147483648', '', 'x', '1.0']) v;
SELECT v, si.try(format('SELECT {ref}, %L', v), 5, 'uuid') FROM unnest(ARRAY['0a000000-0000-4000-8000-00000000000a', '0A000000-0000-4000-8000-00000000000A', '{0a000000-0000-4000-8000-00000000000a}', 'x']) v;
SELECT v, si.try(format('SELECT {ref}, %L', v), 5, 'text') FROM unnest(ARRAY['', ' a ', 'Ünï']) v;
SELECT v, si.try(format('SELECT {ref}, %L', v), 5, 'int4range') FROM unnest(ARRAY['[1,3)', '[1,2]', 'empty']) v;
SELECT v, si.try(format('SELECT {ref}, %L', v), 5, 'inet') FROM unnest(ARRAY['10.0.0.1', '10.0.0.1/32', '10.0.0.1/24', '::1', '::1/128', '::1/0', '10.0.0.1/032', '10.0.0.01']) v;
-- A cast to text adds the mask to an inet key (above), and takes the padding of a char(n) key: both forms mean the one key.
SELECT si.register('SELECT {ref}, p_new_row->>''v''', 5, 'bpchar', 'si.padded'::regclass);
SELECT quote_literal(v) AS v, si.eval('{NULL}', ARRAY[jsonb_build_object('v', v)]) FROM unnest(ARRAY['ab', 'ab  ', 'ab   ', 'abcd', 'abcde', '']) v;

-- An expression that the set form evaluates for rows no call would: evaluated again, call by call.
SELECT si.register('SELECT {ref}, t.id::text FROM synchro_projection.si_task t WHERE t.id = (p_new_row->>''id'')::int AND 10 / (t.team - 1) IS NOT NULL');
SELECT si.eval('{NULL,NULL}', '{"{\"id\": 2}","{\"id\": 3}"}'), si.eval('{NULL,NULL}', '{"{\"id\": 2}","{\"id\": 1}"}');
-- Errors of the function name its SQLSTATE and no value.
SELECT si.register('SELECT {ref}, ((p_new_row->>''team'')::int)::text');
SELECT si.eval('{NULL}', '{"{\"team\": \"secret\"}"}');
SELECT si.eval('{NULL}', '{NULL,NULL}'), si.eval('{{NULL}}', '{{NULL}}');
SELECT synchro._evaluate_impact(-1, 1, 1, '{}', '{}');
SELECT synchro._evaluate_impact(max(generation), currval('si.rel_no')::int, 0, '{}', '{}') FROM synchro.registry_generation;
-- Conditions of the server are no failures of the function.
SELECT si.register('SELECT {ref}, count(*)::text FROM generate_series(1, 1000000000)');
SET statement_timeout = '50ms';
DO $$BEGIN PERFORM si.eval(); EXCEPTION WHEN query_canceled THEN RAISE WARNING 'canceled'; END$$;
RESET statement_timeout;

-- Who it runs as, and what it cannot do: it reads with its owner's rights only, read-only, without the session's settings.
SELECT si.try('SELECT {ref}, current_user::text || '' '' || current_setting(''TimeZone'') || '' '' || current_setting(''search_path'') || '' '' || current_setting(''jit'')', 5, 'text');
-- (No registered function may call such functions: they stand for whatever a view or a type could run.)
CREATE FUNCTION si.attempt(p_sql text) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  EXECUTE p_sql;
  RETURN 'done';
EXCEPTION WHEN OTHERS THEN
  RETURN SQLSTATE;
END
$$;
CREATE FUNCTION si.probe() RETURNS SETOF text LANGUAGE sql STABLE AS $$
  SELECT e || ': ' || si.attempt(e) FROM unnest(ARRAY['SELECT secret FROM synchro.secret_key', 'SET ROLE synchro_owner', 'RESET ROLE', 'SET SESSION AUTHORIZATION DEFAULT', 'LISTEN x',
    'PREPARE x AS SELECT 1', 'DECLARE x CURSOR WITH HOLD FOR SELECT 1', 'CREATE TEMP TABLE x ()', 'INSERT INTO si.own VALUES (1)', 'SELECT 1']) e
$$;
CREATE TABLE si.own (n int);
ALTER TABLE si.own OWNER TO si_app;
SELECT si.register('SELECT {ref}, p FROM si.probe() p', 20, 'text');
SELECT unnest(string_to_array(si.eval(), ' 1='));
SELECT current_user = session_user AS back, current_setting('search_path') AS path, count(*) AS written FROM si.own;

-- The function, its copy or its owner's rights change after registration.
SELECT si.register('SELECT {ref}, ''1''');
SELECT si.eval();
CREATE OR REPLACE FUNCTION si.f(p_old_row jsonb, p_new_row jsonb) RETURNS SETOF synchro.synchro_row_ref LANGUAGE sql STABLE SET search_path = pg_catalog, synchro BEGIN ATOMIC SELECT 'a', 'b', 'c'; END;
SELECT si.eval();
SELECT si.register('SELECT {ref}, ''1''');
SELECT si.eval();
CREATE OR REPLACE FUNCTION synchro_twin.si_twin(p_old_row jsonb, p_new_row jsonb) RETURNS SETOF synchro.synchro_row_ref LANGUAGE sql STABLE BEGIN ATOMIC SELECT 'a', 'b', 'c'; END;
SELECT si.eval();
SELECT si.register('SELECT {ref}, t.id::text FROM synchro_projection.si_task t WHERE t.id = 1');
SELECT si.eval();
REVOKE SELECT ON synchro_projection.si_task FROM si_app;
SELECT si.eval();
GRANT SELECT ON synchro_projection.si_task TO si_app;
SELECT si.eval();
DROP FUNCTION si.f(jsonb, jsonb);
SELECT si.eval();
SELECT count(*) AS copies FROM pg_proc WHERE proname = 'si_twin';

DELETE FROM synchro.membership_dependency WHERE target_rel_no >= 9100001;
DELETE FROM synchro.registration WHERE rel_no >= 9100001;
DELETE FROM synchro.relation WHERE rel_no >= 9100001;
DROP VIEW synchro_projection.si_task;
DROP TABLE synchro_data.r_9100001;
DROP SCHEMA si CASCADE;
DROP OWNED BY si_app;
DROP ROLE si_app;
