-- Evaluation of the assignment function.
BEGIN;
SET LOCAL client_min_messages = warning;
SET LOCAL synchro.ddl_guard = off;
CREATE SCHEMA sa;
CREATE ROLE sa_app;
GRANT CREATE, USAGE ON SCHEMA sa TO sa_app;
DELETE FROM synchro.assignment_function;
SELECT count(*) AS without_function FROM synchro._evaluate_assignment('u');
CREATE FUNCTION sa.register(p_query text, p_max int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM synchro.assignment_function;
  DROP FUNCTION IF EXISTS sa.f(text);
  SET LOCAL ROLE sa_app;
  EXECUTE 'CREATE FUNCTION sa.f(p_user_id text) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro BEGIN ATOMIC ' || p_query || '; END';
  RESET ROLE;
  INSERT INTO synchro.assignment_function (function_oid, function_schema, function_name, max_scopes, definition_hash, actor)
  SELECT oid, 'sa', 'f', p_max, synchro._definition_hash(oid), 'sa_app' FROM pg_proc WHERE proname = 'f' AND pronamespace = 'sa'::regnamespace;
END
$$;
CREATE FUNCTION sa.eval() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_result text;
  v_detail text;
BEGIN
  SELECT count(*) || ': ' || left(coalesce(string_agg(s, ' '), ''), 40) INTO v_result FROM synchro._evaluate_assignment('u-1') s;
  RETURN v_result;
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS v_detail = PG_EXCEPTION_DETAIL;
  RETURN concat_ws(' | ', SQLSTATE, SQLERRM, nullif(v_detail, ''));
END
$$;
CREATE FUNCTION sa.try(p_query text, p_max int DEFAULT 1000) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM sa.register(p_query, p_max);
  RETURN sa.eval();
END
$$;
SELECT sa.try('VALUES (''section:b''), (''of '' || p_user_id), (''section:b''), (''Z'')'), sa.try('SELECT ''a'' WHERE false');
SELECT sa.try('SELECT ''s'' || i FROM generate_series(1, 1000) i'), sa.try('SELECT ''s'' || i FROM generate_series(1, 1001) i'), sa.try('SELECT ''s'' || i FROM generate_series(1, 1001) i', NULL),
       sa.try('SELECT ''s'' || i % 7 FROM generate_series(1, 5000) i', 7);
SELECT sa.try('SELECT NULL::text'), sa.try('SELECT '' '''), sa.try('SELECT ''user:'' || p_user_id'), sa.try('SELECT ''users:x'''), sa.try('SELECT repeat(''x'', 256)');
SELECT sa.try('SELECT (1 / (length(p_user_id) - 3))::text');
SELECT sa.try('SELECT current_user::text || session_user::text') = '1: sa_app' || session_user AS as_its_owner;
CREATE TABLE sa.secret (section text);
SELECT sa.try('SELECT xmlserialize(content query_to_xml(''SELECT * FROM synchro.secret_key'', true, true, '''') AS text)'), sa.try('SELECT section FROM sa.secret');
SELECT sa.register('SELECT ''a''', 5);
SELECT sa.eval();
CREATE OR REPLACE FUNCTION sa.f(p_user_id text) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro BEGIN ATOMIC SELECT 'b'; END;
SELECT sa.eval();
DROP FUNCTION sa.f(text);
SELECT sa.eval();
ROLLBACK;
