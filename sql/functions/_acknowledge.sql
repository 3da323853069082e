CREATE FUNCTION synchro._acknowledge(p_client synchro.client, p_cursors synchro.scope_cursor[]) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Advances the checkpoints to the presented cursors, never back. A checkpoint at the end of a transaction, with no effect of its
-- scope between it and the cursor, stays: it retains the same history, and an idle client writes nothing but a sign of life.
-- p_cursors: valid ones of assigned scopes, at least one of them newer than its checkpoint.
BEGIN
  UPDATE synchro.client_scope s
     SET ack_kind = CASE c.event WHEN -1 THEN 'generation_start' WHEN 9223372036854775807 THEN 'transaction_end' ELSE 'effect' END,
         ack_lsn = CASE WHEN c.event <> -1 THEN c.lsn END,
         ack_event = CASE WHEN c.event NOT IN (-1, 9223372036854775807) THEN c.event END,
         ack_effect = CASE WHEN c.event NOT IN (-1, 9223372036854775807) THEN c.effect END
    FROM unnest(p_cursors) c
    JOIN synchro.client_checkpoint a ON a.client_no = p_client.client_no AND a.scope_id = c.scope_id
   WHERE s.client_no = p_client.client_no AND s.scope_id = c.scope_id
     AND (c.lsn, c.event, c.effect) > (a.ack_lsn, a.ack_event, a.ack_effect)
     AND (a.ack_event <> 9223372036854775807 OR c.high_lsn > a.ack_lsn);
  -- To the minute: the client's row is also what its pushes lock.
  IF p_client.last_acknowledged_at IS NULL OR p_client.last_acknowledged_at < now() - interval '1 minute' THEN
    UPDATE synchro.client c SET last_acknowledged_at = now() WHERE c.client_no = p_client.client_no;
  END IF;
END
$fn$;
