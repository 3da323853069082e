CREATE FUNCTION synchro._push_check_stored(p_client_no bigint, p_atomic boolean, p_ids uuid[], p_fingerprints bytea[])
RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Some of a new batch's mutations were completed by other batches: each must be the same mutation, and neither this batch nor the
-- one that completed it may be an atomic group. Errors: idempotency_conflict, invalid_request.
BEGIN
  IF EXISTS (SELECT FROM unnest(p_ids, p_fingerprints) AS n(id, fingerprint)
               JOIN synchro.push_mutation s ON s.client_no = p_client_no AND s.mutation_id = n.id
              WHERE s.fingerprint <> n.fingerprint) THEN
    PERFORM synchro._raise('idempotency_conflict');
  ELSIF p_atomic OR EXISTS (SELECT FROM unnest(p_ids) AS n(id)
               JOIN synchro.push_mutation s ON s.client_no = p_client_no AND s.mutation_id = n.id
               JOIN synchro.push_batch b ON b.client_no = s.client_no AND b.batch_id = s.batch_id
              WHERE b.atomic) THEN
    PERFORM synchro._raise('invalid_request');
  END IF;
END
$fn$;
