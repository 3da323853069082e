-- The examples of docs/registration.md, word for word; then what they do to each other.
SET client_min_messages = warning;
\set VERBOSITY terse
CREATE SCHEMA app;
GRANT USAGE ON SCHEMA app TO synchro_owner, synchro_worker;
CREATE TABLE app.member (id bigint PRIMARY KEY, team_id uuid, user_id text);
CREATE TABLE app.task (id uuid PRIMARY KEY, team_id uuid, title text);
CREATE TABLE app.comment (id bigint PRIMARY KEY, task_id uuid, body text);
GRANT SELECT ON ALL TABLES IN SCHEMA app TO synchro_owner, synchro_worker;
INSERT INTO app.member VALUES (1, '00000000-0000-4000-8000-000000000001', 'ann'), (2, '00000000-0000-4000-8000-000000000001', 'bob'), (3, '00000000-0000-4000-8000-000000000002', 'cy');
INSERT INTO app.task VALUES ('00000000-0000-4000-8000-00000000000a', '00000000-0000-4000-8000-000000000001', 'one'), ('00000000-0000-4000-8000-00000000000b', '00000000-0000-4000-8000-000000000002', 'two');
INSERT INTO app.comment VALUES (1, '00000000-0000-4000-8000-00000000000a', 'first'), (2, '00000000-0000-4000-8000-00000000000b', 'second'), (3, NULL, 'lost');

BEGIN;
SELECT synchro.synchro_prepare_projection_view('app.member', 'member', '{id,team_id,user_id}');
SELECT synchro.synchro_prepare_projection_view('app.task', 'task', '{id,team_id}');

CREATE FUNCTION app.task_scopes(p_row_key uuid) RETURNS SETOF text LANGUAGE sql STABLE
SET search_path = pg_catalog, synchro BEGIN ATOMIC
  SELECT 'user:' || m.user_id FROM synchro_projection.task t JOIN synchro_projection.member m ON m.team_id = t.team_id
   WHERE t.id = p_row_key;
END;
DO $do$ BEGIN                                   -- the table's id is a constant of the function
  EXECUTE format($f$
    CREATE FUNCTION app.tasks_of_member(p_old_row jsonb, p_new_row jsonb) RETURNS SETOF synchro.synchro_row_ref LANGUAGE sql STABLE
    SET search_path = pg_catalog, synchro BEGIN ATOMIC
      SELECT %L, 'string', t.id::text FROM synchro_projection.task t
       WHERE t.team_id IN ((p_old_row->>'team_id')::uuid, (p_new_row->>'team_id')::uuid);
    END $f$, synchro.synchro_table_id('app.task'));
END $do$;
REVOKE EXECUTE ON FUNCTION app.task_scopes(uuid), app.tasks_of_member(jsonb, jsonb) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION app.task_scopes(uuid), app.tasks_of_member(jsonb, jsonb) TO synchro_worker;

SELECT synchro.synchro_register_table('app.task', 'app.task_scopes', 'multi_scope', p_max_scope_fanout => 100, p_push_policy => 'read_only');
SELECT synchro.synchro_register_capture_dependency('app.member', '{id}', '{team_id,user_id}');
SELECT synchro.synchro_register_membership_dependency('app.member', 'app.task', 'app.tasks_of_member', '{team_id,user_id}');
COMMIT;

BEGIN;
SELECT synchro.synchro_prepare_projection_view('app.comment', 'comment', '{id,task_id}');

CREATE FUNCTION app.comment_scopes(p_row_key bigint) RETURNS SETOF text LANGUAGE sql STABLE
SET search_path = pg_catalog, synchro BEGIN ATOMIC
  SELECT 'user:' || m.user_id
    FROM synchro_projection.comment c JOIN synchro_projection.task t ON t.id = c.task_id JOIN synchro_projection.member m ON m.team_id = t.team_id
   WHERE c.id = p_row_key;
END;
DO $do$ BEGIN
  EXECUTE format($f$
    CREATE FUNCTION app.comments_of_task(p_old_row jsonb, p_new_row jsonb) RETURNS SETOF synchro.synchro_row_ref LANGUAGE sql STABLE
    SET search_path = pg_catalog, synchro BEGIN ATOMIC
      SELECT %1$L, 'int64', c.id::text FROM synchro_projection.comment c
       WHERE c.task_id IN ((p_old_row->>'id')::uuid, (p_new_row->>'id')::uuid);
    END $f$, synchro.synchro_table_id('app.comment'));
  EXECUTE format($f$
    CREATE FUNCTION app.comments_of_member(p_old_row jsonb, p_new_row jsonb) RETURNS SETOF synchro.synchro_row_ref LANGUAGE sql STABLE
    SET search_path = pg_catalog, synchro BEGIN ATOMIC
      SELECT %1$L, 'int64', c.id::text FROM synchro_projection.task t JOIN synchro_projection.comment c ON c.task_id = t.id
       WHERE t.team_id IN ((p_old_row->>'team_id')::uuid, (p_new_row->>'team_id')::uuid);
    END $f$, synchro.synchro_table_id('app.comment'));
END $do$;
REVOKE EXECUTE ON FUNCTION app.comment_scopes(bigint), app.comments_of_task(jsonb, jsonb), app.comments_of_member(jsonb, jsonb) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION app.comment_scopes(bigint), app.comments_of_task(jsonb, jsonb), app.comments_of_member(jsonb, jsonb) TO synchro_worker;

SELECT synchro.synchro_register_table('app.comment', 'app.comment_scopes', 'multi_scope', p_max_scope_fanout => 100, p_push_policy => 'read_only');
SELECT synchro.synchro_register_membership_dependency('app.task', 'app.comment', 'app.comments_of_task', '{team_id}');
SELECT synchro.synchro_register_membership_dependency('app.member', 'app.comment', 'app.comments_of_member', '{team_id,user_id}');
COMMIT;

-- Which scopes hold what, and which rows a change reaches.
CREATE FUNCTION app.no(p_relation regclass) RETURNS int LANGUAGE sql STABLE AS $$SELECT rel_no FROM synchro.relation WHERE relation_oid = p_relation$$;
CREATE FUNCTION app.impact(p_source regclass, p_target regclass, p_old jsonb, p_new jsonb) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT string_agg(i.key, ' ' ORDER BY i.key) FROM synchro._evaluate_impact((SELECT max(generation) FROM synchro.registry_generation), app.no(p_target), app.no(p_source), ARRAY[p_old], ARRAY[p_new]) i
$$;
SELECT e.* FROM synchro._evaluate_membership(app.no('app.task'), (SELECT max(generation) FROM synchro.registry_generation), ARRAY(SELECT id::text FROM app.task ORDER BY id)) e;
SELECT e.* FROM synchro._evaluate_membership(app.no('app.comment'), (SELECT max(generation) FROM synchro.registry_generation), ARRAY(SELECT id::text FROM app.comment ORDER BY id)) e;
SELECT app.impact('app.member', 'app.task', to_jsonb(m), NULL) AS member_gone, app.impact('app.member', 'app.comment', to_jsonb(m), to_jsonb(m) || '{"team_id": "00000000-0000-4000-8000-000000000002"}') AS member_moves
  FROM app.member m WHERE id = 1;
SELECT app.impact('app.task', 'app.comment', to_jsonb(t), to_jsonb(t) || '{"team_id": null}') AS task_moves FROM app.task t WHERE title = 'two';

-- The inner ones of a chain don't go alone.
SELECT synchro.synchro_unregister_capture_dependency('app.member');
SELECT synchro.synchro_unregister_table('app.task');
BEGIN;
SELECT synchro.synchro_unregister_table('app.comment'), synchro.synchro_unregister_table('app.task'), synchro.synchro_unregister_capture_dependency('app.member');
COMMIT;
SELECT count(*) FROM synchro.membership_dependency WHERE generation = (SELECT max(generation) FROM synchro.registry_generation) AND target_rel_no IN (app.no('app.task'), app.no('app.comment'));
UPDATE synchro.progress SET registry_generation = (SELECT max(generation) FROM synchro.registry_generation), schema_version = (SELECT max(schema_version) FROM synchro.manifest);
DROP SCHEMA app CASCADE;
