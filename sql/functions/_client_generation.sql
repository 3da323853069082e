CREATE FUNCTION synchro._client_generation(p_client synchro.client, p_user_id text, p_client_id text, p_generation bigint)
RETURNS synchro.client LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- The client as it is after this connect. p_client: its row, all NULL when unknown. p_generation: as requested, NULL when absent.
-- A generation that is not the current one of this client (lower, higher, expired, or its record is gone since a restore) is
-- replaced by one above both. With the old one go its checkpoints, and the scopes that it had lost: it has no cursor left.
-- Errors: SY001 when there is no higher generation; 40001 when another session has just made this client.
DECLARE
  v_client  synchro.client := p_client;
  v_renewed boolean := coalesce(p_client.expired, false)
                      OR (p_generation IS NOT NULL AND p_generation IS DISTINCT FROM p_client.client_generation);
  v_next    bigint := greatest(p_generation, p_client.client_generation, 0) + 1;
BEGIN
  IF (v_renewed OR p_client.client_no IS NULL) AND v_next > 9007199254740991 THEN
    PERFORM synchro._raise('invalid_request', '{"message":"invalid request: client_generation: out of range"}');
  END IF;
  IF p_client.client_no IS NULL THEN
    INSERT INTO synchro.client (client_id, user_id, client_generation, confirmed)
    VALUES (p_client_id, p_user_id, v_next, p_generation IS NOT NULL)
    ON CONFLICT (client_id) DO NOTHING RETURNING * INTO v_client;
    IF NOT FOUND THEN
      RAISE EXCEPTION USING ERRCODE = '40001', MESSAGE = 'a client connected for the first time twice at once';
    END IF;
  ELSIF v_renewed THEN
    -- A renewed generation has its whole retention interval before it.
    UPDATE synchro.client c SET client_generation = v_next, confirmed = p_generation IS NOT NULL, expired = false, last_acknowledged_at = now()
     WHERE c.client_no = p_client.client_no RETURNING c.* INTO v_client;
    UPDATE synchro.client_scope s SET ack_kind = 'generation_start', ack_lsn = NULL, ack_event = NULL, ack_effect = NULL
     WHERE s.client_no = p_client.client_no AND s.assigned;
    DELETE FROM synchro.client_scope s WHERE s.client_no = p_client.client_no AND NOT s.assigned;
  ELSIF p_generation IS NOT NULL AND NOT p_client.confirmed THEN
    UPDATE synchro.client c SET confirmed = true WHERE c.client_no = p_client.client_no RETURNING c.* INTO v_client;
  END IF;
  RETURN v_client;
END
$fn$;
