-- What makes the application sync. Run as archive, in one transaction: all of it becomes one registry generation.

-- The roles of the extension need to read what they sync, and the writer to write what may be pushed.
GRANT USAGE ON SCHEMA archive TO synchro_owner, synchro_worker, synchro_writer;
GRANT SELECT ON archive.package, archive.note TO synchro_owner, synchro_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON archive.note TO synchro_writer;

-- Membership functions read projections: the state that has been materialized, in commit order.
SELECT synchro.synchro_prepare_projection_view('archive.package', 'package', '{id,maintainer,section}');
SELECT synchro.synchro_prepare_projection_view('archive.note', 'note', '{id,team}');

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

-- The scopes of a user beside the own one; reads the application's tables.
CREATE FUNCTION archive.followed_scopes(p_user_id text) RETURNS SETOF text LANGUAGE sql STABLE
SET search_path = pg_catalog, synchro
BEGIN ATOMIC
  SELECT 'section:' || f.section FROM archive.follow f WHERE f.team = p_user_id;
END;

REVOKE EXECUTE ON FUNCTION archive.package_scopes(text), archive.note_scopes(uuid), archive.followed_scopes(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION archive.package_scopes(text), archive.note_scopes(uuid) TO synchro_worker;
GRANT EXECUTE ON FUNCTION archive.followed_scopes(text) TO synchro_owner;

SELECT synchro.synchro_register_table('archive.package', 'archive.package_scopes',
  p_composition => 'multi_scope', p_push_policy => 'read_only', p_max_scope_fanout => 2);
SELECT synchro.synchro_register_table('archive.note', 'archive.note_scopes');
SELECT synchro.synchro_register_assignment_function('archive.followed_scopes');
