CREATE FUNCTION synchro._open_cursors(p_client synchro.client, p_scopes json, p_progress synchro.progress, p_schema_hash text,
  OUT o_presented text[], OUT o_valid synchro.scope_cursor[], OUT o_refused boolean, OUT o_ahead boolean, OUT o_newer boolean)
LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Judges the cursors of a pull. p_scopes: scope id -> {"cursor"}.
-- o_presented: all scope ids, in the order of their octets. o_valid: cursors to go on from, likewise; scopes whose cursor is null or
-- stale (authentic, but of an old stream, generation or manifest, or below the resume floor) are not among them.
-- o_refused: some scope was never assigned to the client, or some cursor is forged or bound to someone else.
-- o_ahead: some valid cursor is above the boundary. o_newer: some valid cursor is above the acknowledged position.
BEGIN
  SELECT coalesce(array_agg(c.scope_id ORDER BY c.scope_id COLLATE "C"), '{}'),
         coalesce(array_agg((c.scope_no, c.scope_id, c.lsn, c.event, c.effect, c.membership_generation, c.retention_generation, c.high_lsn)
                            ::synchro.scope_cursor ORDER BY c.scope_id COLLATE "C") FILTER (WHERE c.valid), '{}'),
         coalesce(bool_or(NOT c.genuine), false),
         coalesce(bool_or(c.valid AND (c.lsn, c.event, c.effect) > (p_progress.commit_lsn, 9223372036854775807, 2147483647)), false),
         coalesce(bool_or(c.valid AND (c.lsn, c.event, c.effect) > (c.ack_lsn, c.ack_event, c.ack_effect)), false)
    INTO o_presented, o_valid, o_refused, o_ahead, o_newer
    FROM (SELECT t.presented_scope AS scope_id, s.scope_no, s.high_lsn, t.lsn, t.event, t.effect, t.membership_generation,
                 t.retention_generation, a.ack_lsn, a.ack_event, a.ack_effect,
                 a.scope_id IS NOT NULL
                   AND (NOT t.presented
                        OR coalesce((t.user_id, t.client_id, t.scope_id) = (p_client.user_id, p_client.client_id, t.presented_scope), false))
                   AS genuine,
                 coalesce(t.stream_generation = p_progress.stream_generation
                          AND t.client_generation = p_client.client_generation
                          AND t.schema_hash = p_schema_hash
                          AND t.membership_generation = coalesce(s.membership_generation, 1)
                          AND t.retention_generation = coalesce(s.retention_generation, 1)
                          AND coalesce((t.lsn, t.event, t.effect) >= (s.floor_lsn, s.floor_event, s.floor_effect), true), false) AS valid
            FROM synchro._presented_cursors(p_scopes) t
            LEFT JOIN synchro.client_checkpoint a ON a.client_no = p_client.client_no AND a.scope_id = t.presented_scope
            LEFT JOIN synchro.scope_resume s ON s.scope_id = t.presented_scope) c;
END
$fn$;
