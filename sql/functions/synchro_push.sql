CREATE FUNCTION synchro.synchro_push(p_user_id text, p_request text, p_claims jsonb DEFAULT NULL)
RETURNS TABLE (status int, body text, wait_on bigint[]) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp SET jit = off
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $fn$
-- One immutable batch of mutations (docs/protocol.md, Push): everything in this transaction, or nothing.
-- p_user_id: from the verified credential. p_request: the body as it came. p_claims: seen by policies, never fingerprinted.
-- Returns status and exact body. Errors: 25000 when the transaction is not READ COMMITTED or has deferred work waiting; everything
-- operational (serialization, deadlock, timeout, resources) propagates and undoes all of it.
-- Everything is found by key: plans are made once and must not be ones that scan a ledger because it was empty at the time.
-- Locks: the client's row and the batch's ledger entry, so that two sends of it run one after the other; the target rows.
DECLARE
  v_client   synchro.client;
  v_request  record;
  v_progress synchro.progress;
  v_state    text;
  v_detail   text;
BEGIN
  PERFORM synchro._push_guard();
  v_client := synchro._open_request('push', p_user_id, p_request);
  SELECT r.* INTO v_request FROM synchro._push_request(p_user_id, p_request) r;
  IF v_request.client_generation IS NULL THEN
    -- no fingerprint, hence nothing to replay: the gate refuses it
    PERFORM synchro._check_gates(v_client, NULL, v_request.schema::json);
  END IF;

  -- Claim the ledger entry or replay what it holds; the gates come after.
  INSERT INTO synchro.push_batch (client_no, batch_id, fingerprint, atomic, mutations)
  VALUES (v_client.client_no, v_request.batch_id, v_request.fingerprint, v_request.atomic, v_request.mutations)
  ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    IF v_request.fingerprint <> (SELECT b.fingerprint FROM synchro.push_batch b
                                  WHERE b.client_no = v_client.client_no AND b.batch_id = v_request.batch_id) THEN
      PERFORM synchro._raise('idempotency_conflict', '{"message":"the batch id was used before with other content"}');
    END IF;
    RETURN QUERY SELECT 200, synchro._push_body(v_client.client_no, v_request.batch_id), NULL::bigint[];
    RETURN;
  END IF;

  v_progress := synchro._check_gates(v_client, v_request.client_generation, v_request.schema::json);
  PERFORM synchro._check_stream(v_progress);
  IF EXISTS (SELECT FROM synchro.quarantine q WHERE q.resolved_at IS NULL) THEN
    PERFORM synchro._raise('temporary_unavailable', '{"reason":"capture_blocked"}');
  END IF;
  PERFORM synchro._push_execute(v_client, p_claims, v_progress.schema_version, v_request.batch_id, v_request.mutations,
                                v_request.atomic, p_request);
  RETURN QUERY SELECT 200, synchro._push_body(v_client.client_no, v_request.batch_id), NULL::bigint[];
EXCEPTION WHEN SQLSTATE 'SY000' THEN
  GET STACKED DIAGNOSTICS v_state = RETURNED_SQLSTATE, v_detail = PG_EXCEPTION_DETAIL;
  RETURN QUERY SELECT e.status, e.body, e.wait_on FROM synchro._error_body(v_state, v_detail) e;
END
$fn$;
