CREATE FUNCTION synchro._push_stored(p_client_no bigint, p_atomic boolean, p_ids uuid[], p_fingerprints bytea[])
RETURNS uuid[] LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Those of a new batch's mutations that other batches completed. Each must be the same mutation, and neither this batch nor the one
-- that completed it may be an atomic group. Errors: idempotency_conflict, invalid_request.
DECLARE
  v_stored uuid[];
  v_same   boolean;
  v_atomic boolean;
BEGIN
  SELECT array_agg(s.mutation_id), bool_and(s.fingerprint = p_fingerprints[array_position(p_ids, s.mutation_id)]),
         bool_or((SELECT b.atomic FROM synchro.push_batch b WHERE b.client_no = s.client_no AND b.batch_id = s.batch_id))
    INTO v_stored, v_same, v_atomic
    FROM synchro.push_mutation s WHERE s.client_no = p_client_no AND s.mutation_id = ANY (p_ids);
  IF v_stored IS NULL THEN
    RETURN '{}';
  ELSIF NOT v_same THEN
    PERFORM synchro._raise('idempotency_conflict', '{"message":"a mutation id was used before with other content"}');
  ELSIF p_atomic OR v_atomic THEN
    PERFORM synchro._raise('invalid_request', '{"message":"invalid request: mutations: one of an atomic group was completed before"}');
  END IF;
  RETURN v_stored;
END
$fn$;
