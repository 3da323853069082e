CREATE FUNCTION synchro._drop_expired_rebuilds(p_limit int) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Removes expired sessions, and stages that no session uses any more or that serve none any more, since another generation of the schema, the
-- stream, or the scope's membership or retention has begun: their sessions are answered the same without them. At most p_limit chunks of
-- rows a call; returns how many went, so that 0 means that nothing is left. Isolation: READ COMMITTED. Locks: the stages that it looks
-- at; those that a new session is just taking are passed over.
DECLARE
  v_stages bigint[];
  v_rows   bigint;
BEGIN
  DELETE FROM synchro.rebuild_session s WHERE s.expires_at <= now();
  -- Lock first: a session that took a stage before is visible to the next statement.
  v_stages := ARRAY(SELECT g.stage_no FROM synchro.rebuild_stage g
                     WHERE NOT EXISTS (SELECT FROM synchro.live_stage l JOIN synchro.rebuild_session s ON s.stage_no = l.stage_no
                                        WHERE l.stage_no = g.stage_no)
                     ORDER BY g.stage_no LIMIT 100 FOR UPDATE OF g SKIP LOCKED);
  v_stages := ARRAY(SELECT u.n FROM unnest(v_stages) u (n)
                     WHERE NOT EXISTS (SELECT FROM synchro.live_stage l JOIN synchro.rebuild_session s ON s.stage_no = l.stage_no
                                        WHERE l.stage_no = u.n));
  -- Nobody shares a stage of that age; some of its rows may remain until a later call.
  UPDATE synchro.rebuild_stage g SET created_at = '-infinity' WHERE g.stage_no = ANY (v_stages) AND g.created_at > '-infinity';
  DELETE FROM synchro.rebuild_chunk r
   USING (SELECT x.stage_no, x.ordinal FROM synchro.rebuild_chunk x WHERE x.stage_no = ANY (v_stages) LIMIT p_limit) d
   WHERE r.stage_no = d.stage_no AND r.ordinal = d.ordinal;
  GET DIAGNOSTICS v_rows = ROW_COUNT;
  DELETE FROM synchro.rebuild_stage g
   WHERE g.stage_no = ANY (v_stages) AND NOT EXISTS (SELECT FROM synchro.rebuild_chunk r WHERE r.stage_no = g.stage_no);
  RETURN v_rows;
END
$fn$;
