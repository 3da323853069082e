CREATE FUNCTION synchro._check_gates(p_client synchro.client, p_generation bigint, p_schema json)
RETURNS synchro.progress LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Generation gate, then schema gate, of push, pull and rebuild. A generation that passes is confirmed: the client has it.
-- p_generation, p_schema: as requested; p_generation NULL when absent. Returns the progress row that the schema was compared with.
-- Errors: SY006, SY008.
DECLARE
  v_current  record;
  v_received record;
BEGIN
  IF p_generation IS DISTINCT FROM p_client.client_generation OR p_client.expired THEN
    PERFORM synchro._raise('client_generation_expired',
                           jsonb_build_object('current_client_generation', p_client.client_generation));
  END IF;
  SELECT p AS progress, m.schema_version, m.schema_hash INTO STRICT v_current
    FROM synchro.progress p JOIN synchro.manifest m USING (schema_version);
  SELECT r.* INTO v_received FROM json_to_record(p_schema) AS r (version bigint, hash text);
  IF v_received.version <> v_current.schema_version OR v_received.hash <> v_current.schema_hash THEN
    PERFORM synchro._raise('schema_mismatch', jsonb_build_object(
      'current_schema', jsonb_build_object('version', v_current.schema_version, 'hash', v_current.schema_hash),
      'received_schema', p_schema));
  END IF;
  IF NOT p_client.confirmed THEN
    UPDATE synchro.client c SET confirmed = true WHERE c.client_no = p_client.client_no;
  END IF;
  RETURN v_current.progress;
END
$fn$;
