-- What makes the application sync. Run as archive, in one transaction: all of it becomes one registry generation.

-- First the locks that registration needs: taken after a GRANT on the same table, they can deadlock with an autovacuum of it.
LOCK TABLE archive.package, archive.dependency, archive.note, archive.team, archive.team_member, archive.task IN SHARE ROW EXCLUSIVE MODE;

-- The roles of the extension need to read what they sync, and the writer to write what may be pushed.
GRANT USAGE ON SCHEMA archive TO synchro_owner, synchro_worker, synchro_writer;
GRANT SELECT ON archive.package, archive.dependency, archive.note, archive.team, archive.team_member, archive.task TO synchro_owner, synchro_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON archive.note, archive.task TO synchro_writer;
GRANT SELECT ON archive.team, archive.team_member TO synchro_writer; -- for the policy of task, and its foreign key

-- Membership functions read projections: the state that has been materialized, in commit order.
SELECT synchro.synchro_prepare_projection_view('archive.package', 'package', '{id,maintainer,section}');
SELECT synchro.synchro_prepare_projection_view('archive.dependency', 'dependency', '{id,package_id}');
SELECT synchro.synchro_prepare_projection_view('archive.note', 'note', '{id,team}');
SELECT synchro.synchro_prepare_projection_view('archive.team', 'team', '{id,active}');
SELECT synchro.synchro_prepare_projection_view('archive.team_member', 'team_member', '{id,team_id,member}');
SELECT synchro.synchro_prepare_projection_view('archive.task', 'task', '{id,team_id}');

CREATE FUNCTION archive.package_scopes(p_row_key text) RETURNS SETOF text LANGUAGE sql STABLE
SET search_path = pg_catalog, synchro
BEGIN ATOMIC
  SELECT 'user:' || p.maintainer FROM synchro_projection.package p WHERE p.id = p_row_key AND p.maintainer <> ''
  UNION ALL
  SELECT 'section:' || p.section FROM synchro_projection.package p WHERE p.id = p_row_key AND p.section <> '';
END;

CREATE FUNCTION archive.note_scopes(p_row_key uuid) RETURNS SETOF text LANGUAGE sql STABLE
SET search_path = pg_catalog, synchro
BEGIN ATOMIC
  SELECT 'user:' || n.team FROM synchro_projection.note n WHERE n.id = p_row_key AND n.team IS NOT NULL;
END;

-- A dependency is where its package is.
CREATE FUNCTION archive.dependency_scopes(p_row_key bigint) RETURNS SETOF text LANGUAGE sql STABLE
SET search_path = pg_catalog, synchro
BEGIN ATOMIC
  SELECT 'user:' || p.maintainer
    FROM synchro_projection.dependency d JOIN synchro_projection.package p ON p.id = d.package_id
   WHERE d.id = p_row_key AND p.maintainer <> ''
  UNION ALL
  SELECT 'section:' || p.section
    FROM synchro_projection.dependency d JOIN synchro_projection.package p ON p.id = d.package_id
   WHERE d.id = p_row_key AND p.section <> '';
END;

-- A task is with every member of its team while the team is active.
CREATE FUNCTION archive.task_scopes(p_row_key uuid) RETURNS SETOF text LANGUAGE sql STABLE
SET search_path = pg_catalog, synchro
BEGIN ATOMIC
  SELECT 'user:' || m.member
    FROM synchro_projection.task k
    JOIN synchro_projection.team t ON t.id = k.team_id
    JOIN synchro_projection.team_member m ON m.team_id = t.id
   WHERE k.id = p_row_key AND t.active;
END;

-- Which rows a change of another row may move: of the old image as of the new one. Ids of tables are the server's, so the
-- functions are made with them as constants.
DO $do$
BEGIN
  EXECUTE format($sql$
    CREATE FUNCTION archive.package_moves_dependencies(p_old_row jsonb, p_new_row jsonb) RETURNS SETOF synchro.synchro_row_ref
    LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
    BEGIN ATOMIC
      SELECT %L, 'int64', d.id::text FROM synchro_projection.dependency d WHERE d.package_id IN (p_old_row->>'id', p_new_row->>'id');
    END$sql$, synchro.synchro_table_id('archive.dependency'));
  EXECUTE format($sql$
    CREATE FUNCTION archive.team_moves_tasks(p_old_row jsonb, p_new_row jsonb) RETURNS SETOF synchro.synchro_row_ref
    LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
    BEGIN ATOMIC
      SELECT %L, 'string', k.id::text FROM synchro_projection.task k WHERE k.team_id IN ((p_old_row->>'id')::uuid, (p_new_row->>'id')::uuid);
    END$sql$, synchro.synchro_table_id('archive.task'));
  EXECUTE format($sql$
    CREATE FUNCTION archive.member_moves_tasks(p_old_row jsonb, p_new_row jsonb) RETURNS SETOF synchro.synchro_row_ref
    LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
    BEGIN ATOMIC
      SELECT %L, 'string', k.id::text FROM synchro_projection.task k
       WHERE k.team_id IN ((p_old_row->>'team_id')::uuid, (p_new_row->>'team_id')::uuid);
    END$sql$, synchro.synchro_table_id('archive.task'));
END
$do$;

-- The scopes of a user beside the own one; reads the application's tables.
CREATE FUNCTION archive.followed_scopes(p_user_id text) RETURNS SETOF text LANGUAGE sql STABLE
SET search_path = pg_catalog, synchro
BEGIN ATOMIC
  SELECT 'section:' || f.section FROM archive.follow f WHERE f.team = p_user_id;
END;

REVOKE EXECUTE ON FUNCTION archive.package_scopes(text), archive.dependency_scopes(bigint), archive.note_scopes(uuid), archive.task_scopes(uuid),
  archive.package_moves_dependencies(jsonb, jsonb), archive.team_moves_tasks(jsonb, jsonb), archive.member_moves_tasks(jsonb, jsonb),
  archive.followed_scopes(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION archive.package_scopes(text), archive.dependency_scopes(bigint), archive.note_scopes(uuid), archive.task_scopes(uuid),
  archive.package_moves_dependencies(jsonb, jsonb), archive.team_moves_tasks(jsonb, jsonb), archive.member_moves_tasks(jsonb, jsonb) TO synchro_worker;
GRANT EXECUTE ON FUNCTION archive.followed_scopes(text) TO synchro_owner;

SELECT synchro.synchro_register_table('archive.package', 'archive.package_scopes',
  p_composition => 'multi_scope', p_push_policy => 'read_only', p_max_scope_fanout => 2);
SELECT synchro.synchro_register_table('archive.dependency', 'archive.dependency_scopes',
  p_composition => 'multi_scope', p_push_policy => 'read_only', p_max_scope_fanout => 2);
SELECT synchro.synchro_register_table('archive.note', 'archive.note_scopes');
SELECT synchro.synchro_register_table('archive.task', 'archive.task_scopes', p_composition => 'multi_scope', p_max_scope_fanout => 100);

-- Teams and who is in them are not synced: they only decide where tasks go.
SELECT synchro.synchro_register_capture_dependency('archive.team', '{id}', '{active}');
SELECT synchro.synchro_register_capture_dependency('archive.team_member', '{id}', '{team_id,member}');

SELECT synchro.synchro_register_membership_dependency('archive.package', 'archive.dependency', 'archive.package_moves_dependencies', '{maintainer,section}');
SELECT synchro.synchro_register_membership_dependency('archive.team', 'archive.task', 'archive.team_moves_tasks', '{active}');
SELECT synchro.synchro_register_membership_dependency('archive.team_member', 'archive.task', 'archive.member_moves_tasks', '{team_id,member}');

SELECT synchro.synchro_register_assignment_function('archive.followed_scopes');
