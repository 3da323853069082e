-- Every refusal of dependencies: SQLSTATE, reason and hint, and that nothing of a refused registration stays. As a login that owns its tables.
SET client_min_messages = warning;
CREATE ROLE dr_app LOGIN;
CREATE ROLE dr_other;
GRANT synchro_operator TO dr_app;
GRANT dr_other TO dr_app;
CREATE SCHEMA dr AUTHORIZATION dr_app;
SET SESSION AUTHORIZATION dr_app;
GRANT USAGE ON SCHEMA dr TO synchro_owner, synchro_worker;
CREATE FUNCTION dr.try(VARIADIC p_sql text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_sql    text;
  v_detail text;
  v_hint   text;
BEGIN
  FOREACH v_sql IN ARRAY p_sql LOOP
    EXECUTE v_sql;
  END LOOP;
  SET CONSTRAINTS ALL IMMEDIATE;
  RAISE EXCEPTION USING ERRCODE = 'OK000';
EXCEPTION
  WHEN SQLSTATE 'OK000' THEN
    RETURN 'accepted';
  WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS v_detail = PG_EXCEPTION_DETAIL, v_hint = PG_EXCEPTION_HINT;
    RETURN SQLSTATE || ' ' || CASE WHEN v_detail LIKE '{%' THEN concat_ws(' ', v_detail::json#>>'{error,code}', v_detail::json#>>'{error,reason}') || ': ' ELSE '' END
           || SQLERRM || ' | ' || coalesce(nullif(v_hint, ''), 'NO HINT');
END
$$;
CREATE TABLE dr.task (id int PRIMARY KEY, team int);
CREATE TABLE dr.member (id int PRIMARY KEY, team int NOT NULL UNIQUE, person text, at timestamptz);
CREATE TABLE dr.pair (a int, b int, PRIMARY KEY (a, b));
CREATE TABLE dr.bare (id int, n int);
CREATE TABLE dr.late (id int PRIMARY KEY DEFERRABLE);
CREATE TABLE dr.moment (id timestamptz PRIMARY KEY);
CREATE TABLE dr.made (n int, id int GENERATED ALWAYS AS (n * 2) STORED PRIMARY KEY);
CREATE TABLE dr.counted (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n int);
CREATE TABLE dr.full (id int PRIMARY KEY); ALTER TABLE dr.full REPLICA IDENTITY FULL;
CREATE UNLOGGED TABLE dr.loose (id int PRIMARY KEY);
CREATE TABLE dr.forced (id int PRIMARY KEY); ALTER TABLE dr.forced ENABLE ROW LEVEL SECURITY; ALTER TABLE dr.forced FORCE ROW LEVEL SECURITY;
CREATE TABLE dr.closed (id int PRIMARY KEY);
CREATE TABLE dr.theirs (id int PRIMARY KEY);
CREATE VIEW dr.seen AS SELECT * FROM dr.member;
GRANT SELECT ON ALL TABLES IN SCHEMA dr TO synchro_owner, synchro_worker;
REVOKE SELECT ON dr.closed FROM synchro_worker;
GRANT ALL ON SCHEMA dr TO dr_other;
ALTER TABLE dr.theirs OWNER TO dr_other;
SELECT synchro.synchro_prepare_projection_view('dr.task', 'dr_task', '{id,team}'), synchro.synchro_prepare_projection_view('dr.member', 'dr_member', '{id,team,person}');
CREATE FUNCTION dr.task_scopes(p_row_key int) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
BEGIN ATOMIC SELECT m.person FROM synchro_projection.dr_task t JOIN synchro_projection.dr_member m ON m.team = t.team WHERE t.id = p_row_key; END;
CREATE FUNCTION dr.plain_scopes(p_row_key int) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro BEGIN ATOMIC SELECT 'all'; END;
SELECT format('CREATE FUNCTION dr.impact(p_old_row jsonb, p_new_row jsonb) RETURNS SETOF synchro.synchro_row_ref LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
  BEGIN ATOMIC SELECT %L, ''int'', t.id::text FROM synchro_projection.dr_task t WHERE t.team IN ((p_old_row->>''team'')::int, (p_new_row->>''team'')::int); END',
  synchro.synchro_table_id('dr.task')) AS make_impact \gset
:make_impact;
CREATE FUNCTION dr.wrong_type(p_old_row jsonb, p_new_row jsonb) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro BEGIN ATOMIC SELECT 'a'; END;
CREATE FUNCTION dr.wrong_arguments(p_old_row json, p_new_row json) RETURNS SETOF synchro.synchro_row_ref LANGUAGE sql STABLE SET search_path = pg_catalog, synchro BEGIN ATOMIC SELECT 'a', 'b', 'c'; END;
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA dr FROM PUBLIC;
GRANT EXECUTE ON FUNCTION dr.task_scopes, dr.plain_scopes, dr.impact, dr.wrong_type, dr.wrong_arguments TO synchro_worker;
RESET SESSION AUTHORIZATION;
CREATE TABLE dr.before AS SELECT (SELECT count(*) FROM synchro.registry_generation) AS generations, (SELECT count(*) FROM pg_publication_rel) AS published;
GRANT SELECT ON dr.before TO dr_app;
SET SESSION AUTHORIZATION dr_app;
\pset format unaligned
\pset footer off

-- Capture dependencies.
SELECT c AS "call", dr.try('SELECT synchro.synchro_register_capture_dependency(' || c || ')') AS outcome FROM unnest(ARRAY[
  $$'dr.member', '{id}', '{team}'$$, $$'dr.member', '{id}', '{id}'$$, $$'dr.counted', '{id}', '{n}'$$,
  $$'member', '{id}', '{team}'$$, $$'db.dr.member', '{id}', '{team}'$$, $$'dr.nothing', '{id}', '{team}'$$, $$'dr.seen', '{id}', '{team}'$$, $$'dr.loose', '{id}', '{id}'$$, $$'synchro.relation', '{rel_no}', '{rel_no}'$$,
  $$'dr.member', '{id,team}', '{person}'$$, $$'dr.pair', '{a}', '{b}'$$, $$'dr.member', '{team}', '{person}'$$, $$'dr.member', '{person}', '{team}'$$, $$'dr.member', '{nothing}', '{team}'$$,
  $$'dr.member', '{}', '{team}'$$, $$'dr.member', NULL, '{team}'$$, $$'dr.member', '{NULL}', '{team}'$$, $$'dr.bare', '{id}', '{n}'$$, $$'dr.late', '{id}', '{id}'$$, $$'dr.full', '{id}', '{id}'$$,
  $$'dr.moment', '{id}', '{id}'$$, $$'dr.made', '{id}', '{n}'$$,
  $$'dr.member', '{id}', '{}'$$, $$'dr.member', '{id}', NULL$$, $$'dr.member', '{id}', '{team,team}'$$, $$'dr.member', '{id}', '{nothing}'$$,
  $$'dr.closed', '{id}', '{id}'$$, $$'dr.forced', '{id}', '{id}'$$]) WITH ORDINALITY u(c, n) ORDER BY n;
-- Of a relation that is registered already.
\set table 'SELECT synchro.synchro_register_table(\'dr.task\', \'dr.plain_scopes\', p_push_policy => \'read_only\')'
\set rule 'SELECT synchro.synchro_register_table(\'dr.task\', \'dr.task_scopes\', p_push_policy => \'read_only\')'
\set capture 'SELECT synchro.synchro_register_capture_dependency(\'dr.member\', \'{id}\', \'{team,person}\')'
\set depend 'SELECT synchro.synchro_register_membership_dependency(\'dr.member\', \'dr.task\', \'dr.impact\', \'{team,person}\')'
SELECT dr.try(:'table', $$SELECT synchro.synchro_register_capture_dependency('dr.task', '{id}', '{team}')$$) AS synced_already,
       dr.try(:'capture', $$SELECT synchro.synchro_register_table('dr.member', 'dr.plain_scopes', p_push_policy => 'read_only')$$) AS captured_already,
       dr.try(:'capture', $$SELECT synchro.synchro_register_capture_dependency('dr.member', '{id}', '{team}')$$) AS other_columns;

-- Membership dependencies: the call.
SELECT dr.try(:'depend', :'rule', :'capture') AS as_it_should_be, dr.try(:'capture', :'depend', :'rule') AS in_another_order;
SELECT c AS "call", dr.try(:'capture', :'table', 'SELECT synchro.synchro_register_membership_dependency(' || c || ')') AS outcome FROM unnest(ARRAY[
  $$'dr.member', 'dr.task', 'dr.impact', '{team}', 1$$, $$'dr.member', 'dr.task', 'dr.impact', '{team}', 1000$$,
  $$'dr.member', 'dr.task', 'dr.impact', '{team}', 0$$, $$'dr.member', 'dr.task', 'dr.impact', '{team}', -1$$, $$'dr.member', 'dr.task', 'dr.impact', '{team}', 1001$$, $$'dr.member', 'dr.task', 'dr.impact', '{team}', NULL$$,
  $$'member', 'dr.task', 'dr.impact', '{team}'$$, $$'dr.member', 'task', 'dr.impact', '{team}'$$,
  $$'dr.theirs', 'dr.task', 'dr.impact', '{id}'$$,
  $$'dr.member', 'dr.task', 'impact', '{team}'$$, $$'dr.member', 'dr.task', 'dr.nothing', '{team}'$$, $$'dr.member', 'dr.task', 'dr.wrong_arguments', '{team}'$$, $$'dr.member', 'dr.task', 'dr.wrong_type', '{team}'$$,
  $$'dr.member', 'dr.task', 'dr.impact', '{}'$$, $$'dr.member', 'dr.task', 'dr.impact', NULL$$, $$'dr.member', 'dr.task', 'dr.impact', '{nothing}'$$, $$'dr.member', 'dr.task', 'dr.impact', '{at}'$$]) WITH ORDINALITY u(c, n) ORDER BY n;
-- At commit: what is missing.
SELECT dr.try(:'capture', :'depend') AS target_not_synced, dr.try(:'rule', :'depend') AS source_not_registered, dr.try(:'rule', :'capture') AS undeclared,
       dr.try(:'capture', :'depend', $$SELECT synchro.synchro_register_capture_dependency('dr.task', '{id}', '{team}')$$) AS target_captured_only;
SELECT dr.try(:'table', $$SELECT synchro.synchro_register_table('dr.member', 'dr.plain_scopes', p_push_policy => 'read_only', p_sync_columns => '{id}')$$,
              $$SELECT synchro.synchro_register_membership_dependency('dr.member', 'dr.task', 'dr.impact', '{at}')$$) AS column_of_synced,
       dr.try(:'rule', $$SELECT synchro.synchro_register_table('dr.member', 'dr.plain_scopes', p_push_policy => 'read_only', p_sync_columns => '{id}')$$, :'depend') AS columns_of_its_view;
-- Functions that change before the commit, or break a rule; the owner loses what it needs.
SELECT dr.try(:'capture', :'rule', :'depend', 'ALTER FUNCTION dr.impact COST 7') AS impact_changed, dr.try(:'capture', :'rule', :'depend', 'ALTER FUNCTION dr.task_scopes COST 7') AS membership_changed,
       dr.try(:'capture', :'rule', :'depend', 'GRANT EXECUTE ON FUNCTION dr.impact TO PUBLIC') AS impact_open, dr.try(:'capture', :'rule', :'depend', 'ALTER FUNCTION dr.task_scopes SECURITY DEFINER') AS definer,
       dr.try('ALTER FUNCTION dr.impact OWNER TO dr_other', :'capture', :'rule', :'depend') AS another_owner,
       dr.try('REVOKE SELECT ON dr.member FROM dr_app', :'capture', :'rule', :'depend') AS owner_cannot_read;
-- Ownership.
RESET SESSION AUTHORIZATION;
CREATE ROLE dr_stranger LOGIN;
GRANT synchro_operator TO dr_stranger;
GRANT USAGE ON SCHEMA dr TO dr_stranger;
GRANT EXECUTE ON FUNCTION dr.try TO dr_stranger;
SET SESSION AUTHORIZATION dr_stranger;
SELECT dr.try(:'capture') AS capture, dr.try(:'depend') AS depend, dr.try($$SELECT synchro.synchro_unregister_capture_dependency('dr.member')$$) AS unregister, dr.try($$SELECT synchro.synchro_table_id('dr.member')$$) AS table_id;
RESET SESSION AUTHORIZATION;

-- Nothing of all this stayed.
\pset format aligned
SELECT b.generations = (SELECT count(*) FROM synchro.registry_generation) AS generations, b.published = (SELECT count(*) FROM pg_publication_rel) AS published,
       (SELECT count(*) FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE c.relnamespace = 'dr'::regnamespace AND NOT t.tgisinternal) AS triggers,
       (SELECT count(*) FROM pg_proc WHERE pronamespace = 'synchro_twin'::regnamespace AND proowner = 'dr_app'::regrole) AS twins,
       (SELECT count(*) FROM synchro.relation WHERE physical_schema = 'dr') AS introduced
  FROM dr.before b;
DROP SCHEMA dr CASCADE;
DROP OWNED BY dr_app, dr_other, dr_stranger;
DROP ROLE dr_app, dr_other, dr_stranger;
