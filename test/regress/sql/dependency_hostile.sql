-- Hostile surroundings: names that shadow ours while registering and evaluating, and application code that a projection's type brings along.
SET client_min_messages = warning;
\set VERBOSITY terse
CREATE ROLE dh_app LOGIN;
GRANT synchro_operator TO dh_app;
CREATE SCHEMA dh AUTHORIZATION dh_app;
CREATE SCHEMA dh_evil AUTHORIZATION dh_app;
CREATE TABLE dh.secret (word text);
INSERT INTO dh.secret VALUES ('sesame');
GRANT TEMP ON DATABASE :DBNAME TO dh_app;
SET SESSION AUTHORIZATION dh_app;
GRANT USAGE ON SCHEMA dh TO synchro_owner, synchro_worker;
-- A domain whose CHECK tries what it can, and says yes: a view casts to it, so it runs in evaluations.
CREATE TABLE dh.loot (word text);
CREATE FUNCTION dh.attempt(p_sql text) RETURNS text LANGUAGE plpgsql AS $$BEGIN EXECUTE p_sql; RETURN 'done'; EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE; END$$;
CREATE FUNCTION dh.agree(p_value text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  RAISE WARNING 'as %: %', current_user, ARRAY(SELECT dh.attempt(s) FROM unnest(ARRAY['INSERT INTO dh.loot VALUES (''x'')', 'INSERT INTO dh.loot SELECT word FROM dh.secret', 'SELECT word FROM dh.secret',
    'SELECT secret FROM synchro.secret_key', 'UPDATE synchro.progress SET heartbeat_at = now()', 'SET ROLE synchro_owner', 'RESET SESSION AUTHORIZATION', 'CREATE TEMP TABLE t ()', 'SET LOCAL transaction_read_only = off']) s);
  RETURN true;
END
$$;
CREATE TABLE dh.task (id int PRIMARY KEY, team text);
CREATE TABLE dh.member (id int PRIMARY KEY, team text, person text);
GRANT SELECT ON dh.task, dh.member TO synchro_owner, synchro_worker;
INSERT INTO dh.task VALUES (1, 'red'), (2, 'blue');
INSERT INTO dh.member VALUES (1, 'red', 'ann'), (2, 'blue', 'bob');
CREATE DOMAIN dh.word AS text;
ALTER TABLE dh.member ALTER COLUMN person TYPE dh.word;
SELECT synchro.synchro_prepare_projection_view('dh.task', 'dh_task', '{id,team}'), synchro.synchro_prepare_projection_view('dh.member', 'dh_member', '{id,team,person}');
CREATE FUNCTION dh.scopes(p_row_key int) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
BEGIN ATOMIC SELECT 'user:' || m.person FROM synchro_projection.dh_task t JOIN synchro_projection.dh_member m ON m.team = t.team WHERE t.id = p_row_key; END;
SELECT format('CREATE FUNCTION dh.impact(p_old_row jsonb, p_new_row jsonb) RETURNS SETOF synchro.synchro_row_ref LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
  BEGIN ATOMIC SELECT %L, ''int'', t.id::text FROM synchro_projection.dh_task t WHERE t.team IN (p_old_row->>''team'', p_new_row->>''team''); END', synchro.synchro_table_id('dh.task')) AS make_impact \gset
:make_impact;
REVOKE EXECUTE ON FUNCTION dh.scopes, dh.impact FROM PUBLIC;
GRANT EXECUTE ON FUNCTION dh.scopes, dh.impact TO synchro_worker;

-- Everything that an unqualified name could find comes first in this session's path.
CREATE FUNCTION dh_evil.eq(text, text) RETURNS boolean LANGUAGE sql IMMUTABLE RETURN true;
CREATE OPERATOR dh_evil.= (FUNCTION = dh_evil.eq, LEFTARG = text, RIGHTARG = text);
CREATE FUNCTION dh_evil.format(text, VARIADIC text[]) RETURNS text LANGUAGE plpgsql AS $$BEGIN RAISE WARNING 'shadowed'; RETURN 'x'; END$$;
CREATE FUNCTION dh_evil._refuse(text, text, text) RETURNS void LANGUAGE plpgsql AS $$BEGIN RAISE WARNING 'shadowed'; END$$;
CREATE TEMP TABLE pg_class (oid oid);
CREATE TEMP TABLE registration (rel_no int);
CREATE TEMP TABLE dh_task (id int, team text);
SET search_path = dh_evil, pg_temp, pg_catalog, synchro;
BEGIN;
SELECT synchro.synchro_register_membership_dependency('dh.member', 'dh.task', 'dh.impact', '{team,person}'), synchro.synchro_register_capture_dependency('dh.member', '{id}', '{team,person}'),
       synchro.synchro_register_table('dh.task', 'dh.scopes', p_push_policy => 'read_only');
COMMIT;
SELECT synchro.synchro_register_capture_dependency('dh_task', '{id}', '{team}');
RESET search_path;
DROP TABLE pg_temp.pg_class, pg_temp.registration, pg_temp.dh_task;

-- The CHECK comes later, as far as the registration is concerned out of nothing.
ALTER DOMAIN dh.word ADD CONSTRAINT agreed CHECK (dh.agree(VALUE)) NOT VALID;
RESET SESSION AUTHORIZATION;
SET search_path = dh_evil, public;
SELECT e.* FROM synchro._evaluate_membership((SELECT rel_no FROM synchro.relation WHERE relation_oid OPERATOR(pg_catalog.=) 'dh.task'::regclass), (SELECT max(generation) FROM synchro.registry_generation), '{1}') e;
SELECT e.* FROM synchro._evaluate_impact((SELECT max(generation) FROM synchro.registry_generation), (SELECT rel_no FROM synchro.relation WHERE relation_oid OPERATOR(pg_catalog.=) 'dh.task'::regclass),
                                         (SELECT rel_no FROM synchro.relation WHERE relation_oid OPERATOR(pg_catalog.=) 'dh.member'::regclass), '{"{\"team\": \"red\"}"}', '{NULL}') e;
RESET search_path;
SELECT count(*) AS loot FROM dh.loot;
SELECT current_setting('transaction_read_only') AS read_only, current_user = session_user AS back;

-- Health says which functions are gone or other than registered.
UPDATE synchro.progress SET registry_generation = (SELECT max(generation) FROM synchro.registry_generation), schema_version = (SELECT max(schema_version) FROM synchro.manifest);
CREATE FUNCTION dh.health() RETURNS jsonb LANGUAGE sql AS $$SELECT synchro.synchro_health_detail()->'functions'$$;
SELECT dh.health();
BEGIN;
ALTER FUNCTION dh.impact COST 3;
SELECT dh.health() AS impact_changed;
ROLLBACK;
BEGIN;
ALTER FUNCTION dh.scopes COST 3;
SELECT dh.health() AS membership_changed;
ROLLBACK;
BEGIN;
SET LOCAL synchro.ddl_guard = off;
DROP FUNCTION dh.impact;
SELECT dh.health() AS impact_gone;
ROLLBACK;
SELECT dh.health();

BEGIN;
SELECT synchro.synchro_unregister_table('dh.task'), synchro.synchro_unregister_capture_dependency('dh.member');
COMMIT;
UPDATE synchro.progress SET registry_generation = (SELECT max(generation) FROM synchro.registry_generation), schema_version = (SELECT max(schema_version) FROM synchro.manifest);
DROP SCHEMA dh, dh_evil CASCADE;
DROP OWNED BY dh_app;
DROP ROLE dh_app;
