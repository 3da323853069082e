CREATE FUNCTION synchro._cursor_updates(p_client synchro.client, p_known json, p_assigned text[], p_progress synchro.progress,
                                        p_schema_hash text, p_mode text, p_affected text[]) RETURNS text LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- scope_cursor_updates of a connect: scope id -> cursor or null, for scopes that were and are assigned.
-- p_known: known_scopes as requested. p_mode: 'none', nothing is said; 'null', every cursor is void; 'bridge', a cursor made under
-- an older manifest is signed anew at the same position if no step since touched its scope and all its other bindings are
-- current, else it is void. p_affected: scopes that the schema action rebuilds.
-- Errors: SY001 for a cursor that is forged or bound to someone else (mode 'bridge').
DECLARE
  v_issued  bigint := extract(epoch FROM now()) * 1000000;
  v_forged  boolean;
  v_updates text;
BEGIN
  IF p_mode = 'none' THEN
    RETURN '{}';
  ELSIF p_mode = 'null' THEN
    RETURN '{' || coalesce((SELECT string_agg(to_json(k.scope_id) || ':null', ',' ORDER BY k.scope_id COLLATE "C")
                              FROM json_object_keys(p_known) k (scope_id) WHERE k.scope_id = ANY (p_assigned)), '') || '}';
  END IF;

  SELECT bool_or(NOT p.genuine),
         string_agg(to_json(p.scope_id) || ':' || coalesce(to_json(p.replacement)::text, 'null'), ',' ORDER BY p.scope_id COLLATE "C")
           FILTER (WHERE p.scope_id = ANY (p_assigned) AND (p.old OR p.affected))
    INTO v_forged, v_updates
    FROM (SELECT c.presented_scope AS scope_id,
                 NOT c.presented
                   OR coalesce((c.user_id, c.client_id, c.scope_id) = (p_client.user_id, p_client.client_id, c.presented_scope), false) AS genuine,
                 c.schema_hash <> p_schema_hash AS old,
                 c.presented_scope = ANY (p_affected) AS affected,
                 CASE WHEN NOT l.incompatible AND c.presented_scope <> ALL (p_affected)
                       AND coalesce(s.affected_version, 0) <= l.schema_version
                       AND c.stream_generation = p_progress.stream_generation
                       AND c.client_generation = p_client.client_generation
                       AND c.membership_generation = coalesce(s.membership_generation, 1)
                       AND c.retention_generation = coalesce(s.retention_generation, 1)
                       AND coalesce((c.lsn, c.event, c.effect) >= (s.floor_lsn, s.floor_event, s.floor_effect), true)
                      THEN synchro._cursor_sign(c.lsn, c.event, c.effect, c.stream_generation, c.user_id, c.client_id,
                             c.client_generation, c.scope_id, p_schema_hash, c.membership_generation, c.retention_generation,
                             v_issued)
                 END AS replacement
            FROM synchro._presented_cursors(p_known) c
            LEFT JOIN synchro.scope_resume s ON s.scope_id = c.presented_scope
            LEFT JOIN synchro._schema_lineage(p_progress.schema_version) l ON l.schema_hash = c.schema_hash) p;
  IF v_forged THEN
    PERFORM synchro._raise('invalid_request', '{"message":"invalid request: known_scopes: a cursor that is not this client''s"}');
  END IF;
  RETURN '{' || coalesce(v_updates, '') || '}';
END
$fn$;
