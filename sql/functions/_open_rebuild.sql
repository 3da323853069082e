CREATE FUNCTION synchro._open_rebuild(p_client synchro.client, p_scope_id text, p_rebuild_id uuid, p_limit int,
                                      p_progress synchro.progress) RETURNS synchro.rebuild_session LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- A new session over a stage of the scope: one that is there if it is good for this client, else a new one.
-- A stage is good when its generations are current, its boundary is not below the resume floor or what the client has
-- acknowledged, and nothing in the scope changed since. Where a changing scope is staged again and again, clients that never
-- wrote, so have no write of theirs to miss, also share a stage of the last minute; their next pull brings the rest.
-- Errors: 40001 when another session staged the scope while this one waited for its turn, or the same request began this session.
-- Locks: the stage against removal; one per scope while a stage is made.
DECLARE
  v_scope   record;
  v_stage   bigint;
  v_session synchro.rebuild_session;
BEGIN
  SELECT s.scope_no, s.high_lsn, s.floor_lsn, s.floor_event, s.floor_effect,
         coalesce(s.membership_generation, 1) AS membership_generation, coalesce(s.retention_generation, 1) AS retention_generation,
         a.ack_lsn, a.ack_event, a.ack_effect
    INTO v_scope
    FROM synchro.client_checkpoint a LEFT JOIN synchro.scope_resume s ON s.scope_id = a.scope_id
   WHERE a.client_no = p_client.client_no AND a.scope_id = p_scope_id;

  SELECT g.stage_no INTO v_stage
    FROM synchro.rebuild_stage g
   WHERE g.scope_id = p_scope_id
     AND (g.schema_version, g.stream_generation, g.membership_generation, g.retention_generation)
       = (p_progress.schema_version, p_progress.stream_generation, v_scope.membership_generation, v_scope.retention_generation)
     AND coalesce((g.boundary_lsn, 9223372036854775807, 2147483647) >= (v_scope.floor_lsn, v_scope.floor_event, v_scope.floor_effect), true)
     AND (g.boundary_lsn, 9223372036854775807, 2147483647) >= (v_scope.ack_lsn, v_scope.ack_event, v_scope.ack_effect)
     AND g.created_at > now() - interval '24 hours'
     AND (coalesce(g.boundary_lsn >= v_scope.high_lsn, true)
          OR (p_client.accepted_write_epoch = 0 AND g.created_at > now() - interval '1 minute'
              AND (SELECT count(*) FROM synchro.rebuild_stage c
                    WHERE c.scope_id = p_scope_id AND c.created_at > now() - interval '1 minute') >= 3))
   ORDER BY g.boundary_lsn DESC LIMIT 1 FOR SHARE;
  IF v_stage IS NULL THEN
    IF NOT synchro._lock_stage(p_scope_id, false) THEN
      -- Wait for whoever stages it. This snapshot cannot see what they make, the next one can.
      PERFORM synchro._lock_stage(p_scope_id, true);
      RAISE EXCEPTION USING ERRCODE = '40001', MESSAGE = 'the scope was staged by another session meanwhile',
                            HINT = 'Repeat the transaction.';
    END IF;
    v_stage := synchro._stage_scope(p_scope_id, v_scope.scope_no, v_scope.high_lsn, v_scope.membership_generation,
                                    v_scope.retention_generation, p_progress);
  END IF;

  -- The same request at the same time may have begun it: then this snapshot does not see it, and ON CONFLICT raises 40001.
  INSERT INTO synchro.rebuild_session (client_no, rebuild_id, client_generation, scope_id, stage_no, page_limit, write_epoch,
                                       expires_at, rebuild_key, cursor_key)
  VALUES (p_client.client_no, p_rebuild_id, p_client.client_generation, p_scope_id, v_stage, p_limit, p_client.accepted_write_epoch,
          now() + interval '24 hours', synchro._token_key('rebuild'), synchro._token_key('cursor'))
  ON CONFLICT DO NOTHING RETURNING * INTO v_session;
  RETURN v_session;
END
$fn$;
