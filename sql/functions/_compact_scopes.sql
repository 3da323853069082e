CREATE FUNCTION synchro._compact_scopes(p_after bigint, p_batch_size int, OUT o_deleted bigint, OUT o_after bigint)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp SET jit = off SET enable_seqscan = off AS $fn$
-- Deletes at most p_batch_size entries that left a scope, and moves the resume floors of those scopes up to their safe positions, all
-- in one statement: neither happens without the other, and everything is judged in one snapshot.
-- The safe position of a scope is the lowest position that a client with a live generation has acknowledged in it, or that the final
-- cursor of a rebuild under way will have; without any of them the end of the scope's last effect. Nothing else is inferred.
-- p_after: number of a scope; only scopes above are looked at, in order, and no further than the batch goes.
-- o_deleted: entries deleted. o_after: where the next batch goes on; NULL when no scope is left.
-- Locks: rows of scopes and entries; none is waited for: what the worker's applier holds at the moment is left for another time.
-- Scopes are visited by index, in order, until the batch is full; the LIMITs inside keep the planner from computing all of them first.
DECLARE
  v_found bigint;
  v_last  bigint;
BEGIN
  WITH victim AS MATERIALIZED (
    SELECT s.scope_no, p.lsn, p.event, p.effect, e.ctid AS place
      FROM (SELECT c.scope_no, c.scope_id, c.high_lsn FROM synchro.scope c
             CROSS JOIN LATERAL (SELECT FROM synchro.scope_entry x WHERE x.scope_no = c.scope_no AND x.state = 'x' LIMIT 1) any_left
             WHERE c.scope_no > p_after ORDER BY c.scope_no OFFSET 0) s
      CROSS JOIN LATERAL (
        SELECT k.lsn, k.event, k.effect
          FROM (SELECT a.ack_lsn AS lsn, a.ack_event AS event, a.ack_effect AS effect, 0 AS rank
                  FROM synchro.client_checkpoint a JOIN synchro.client c ON c.client_no = a.client_no
                 WHERE a.scope_id = s.scope_id AND a.assigned AND NOT c.expired AND c.retired_at IS NULL
                UNION ALL
                SELECT g.boundary_lsn, 9223372036854775807, 2147483647, 0
                  FROM synchro.rebuild_session r
                  JOIN synchro.live_stage g ON g.stage_no = r.stage_no
                  JOIN synchro.client c ON c.client_no = r.client_no AND c.client_generation = r.client_generation
                 WHERE r.scope_id = s.scope_id AND NOT r.completed AND r.expires_at > now() AND NOT c.expired AND c.retired_at IS NULL
                UNION ALL
                SELECT s.high_lsn, 9223372036854775807, 2147483647, 1) k
         ORDER BY k.rank, k.lsn, k.event, k.effect LIMIT 1) p
      CROSS JOIN LATERAL (
        SELECT x.ctid FROM synchro.scope_entry x
         WHERE x.scope_no = s.scope_no AND x.state = 'x' AND (x.commit_lsn, x.event_ordinal, x.effect_ordinal) <= (p.lsn, p.event, p.effect)
         ORDER BY x.commit_lsn, x.event_ordinal, x.effect_ordinal LIMIT p_batch_size) e
     ORDER BY s.scope_no LIMIT p_batch_size
  ), floor AS MATERIALIZED (
    SELECT c.scope_no FROM synchro.scope c
     WHERE c.scope_no IN (SELECT v.scope_no FROM victim v) FOR NO KEY UPDATE SKIP LOCKED
  ), entry AS MATERIALIZED (
    -- As arrays the places are fetched one by one; the planner would join them with all that ever left.
    SELECT x.ctid AS place FROM synchro.scope_entry x
     WHERE x.ctid = ANY (ARRAY(SELECT v.place FROM victim v JOIN floor f ON f.scope_no = v.scope_no)) AND x.state = 'x' FOR UPDATE SKIP LOCKED
  ), gone AS (
    DELETE FROM synchro.scope_entry x WHERE x.ctid = ANY (ARRAY(SELECT e.place FROM entry e)) AND x.state = 'x' RETURNING x.scope_no
  ), moved AS (
    UPDATE synchro.scope c
       SET floor_kind = CASE v.event WHEN 9223372036854775807 THEN 'transaction_end' ELSE 'effect' END, floor_lsn = v.lsn,
           floor_event = CASE WHEN v.event <> 9223372036854775807 THEN v.event END,
           floor_effect = CASE WHEN v.event <> 9223372036854775807 THEN v.effect END
      FROM (SELECT DISTINCT v.scope_no, v.lsn, v.event, v.effect FROM victim v WHERE v.scope_no IN (SELECT g.scope_no FROM gone g)) v
      JOIN synchro.scope_resume f ON f.scope_no = v.scope_no
     WHERE c.scope_no = v.scope_no AND (v.lsn, v.event, v.effect) > (f.floor_lsn, f.floor_event, f.floor_effect)
  )
  SELECT (SELECT count(*) FROM gone), count(*), max(v.scope_no) INTO o_deleted, v_found, v_last FROM victim v;
  o_after := CASE WHEN v_found < p_batch_size THEN NULL WHEN o_deleted = 0 THEN v_last ELSE v_last - 1 END;
END
$fn$;
