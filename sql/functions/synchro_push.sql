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
  v_client      synchro.client;
  v_request     record;
  v_fingerprint bytea;
  v_batch       synchro.push_batch;
  v_progress    synchro.progress;
  v_state       text;
  v_detail      text;
BEGIN
  PERFORM synchro._push_guard();
  v_client := synchro._open_request('push', p_user_id, p_request);
  SELECT r.batch_id, r.atomic IS NOT NULL AS atomic, r.client_generation, r.schema, r.mutations INTO v_request
    FROM json_to_record(p_request::json) AS r(batch_id uuid, atomic boolean, client_generation bigint, schema json, mutations json);
  IF v_request.client_generation IS NULL THEN
    -- no fingerprint, hence nothing to replay: the gate refuses it
    PERFORM synchro._check_gates(v_client, NULL, v_request.schema);
  END IF;
  v_fingerprint := synchro._batch_fingerprint(p_user_id, p_request::json);

  -- Claim the ledger entry or replay what it holds; the gates come after.
  INSERT INTO synchro.push_batch (client_no, batch_id, fingerprint, atomic)
  VALUES (v_client.client_no, v_request.batch_id, v_fingerprint, v_request.atomic)
  ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    SELECT b.* INTO STRICT v_batch FROM synchro.push_batch b
     WHERE b.client_no = v_client.client_no AND b.batch_id = v_request.batch_id;
    IF v_batch.fingerprint <> v_fingerprint THEN
      PERFORM synchro._raise('idempotency_conflict', '{"message":"the batch id was used before with other content"}');
    END IF;
    RETURN QUERY SELECT v_batch.status, v_batch.body, NULL::bigint[];
    RETURN;
  END IF;

  v_progress := synchro._check_gates(v_client, v_request.client_generation, v_request.schema);
  PERFORM synchro._check_stream(v_progress);
  IF EXISTS (SELECT FROM synchro.quarantine q WHERE q.resolved_at IS NULL) THEN
    PERFORM synchro._raise('temporary_unavailable', '{"reason":"capture_blocked"}');
  END IF;
  v_batch.body := synchro._push_execute(v_client, p_claims, v_progress.schema_version, v_request.batch_id, v_request.atomic,
                                        v_request.mutations::text);
  UPDATE synchro.push_batch b SET status = 200, body = v_batch.body
   WHERE b.client_no = v_client.client_no AND b.batch_id = v_request.batch_id;
  RETURN QUERY SELECT 200, v_batch.body, NULL::bigint[];
EXCEPTION WHEN SQLSTATE 'SY000' THEN
  GET STACKED DIAGNOSTICS v_state = RETURNED_SQLSTATE, v_detail = PG_EXCEPTION_DETAIL;
  RETURN QUERY SELECT e.status, e.body, e.wait_on FROM synchro._error_body(v_state, v_detail) e;
END
$fn$;
