CREATE FUNCTION synchro._connect(p_user_id text, p_request text) RETURNS text LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- The body of a successful connect. Errors: class SY; 40001 when the same client connects for the first time twice at once.
DECLARE
  v_client   synchro.client := synchro._open_request('connect', p_user_id, p_request);
  v_request  record;
  v_schema   record;
  v_progress synchro.progress;
  v_manifest synchro.manifest;
  v_assigned record;
  v_action   record;
  v_updates  text;
BEGIN
  SELECT r.* INTO v_request
    FROM json_to_record(p_request::json) AS r (client_id text, client_generation bigint, schema json, schema_reset boolean,
                                               known_scopes json, seed_receipts json);
  SELECT s.* INTO v_schema FROM json_to_record(v_request.schema) AS s (version bigint, hash text);
  v_request.schema_reset := coalesce(v_request.schema_reset, false);
  -- A client without a generation is fresh, or repeats a first connect whose answer it never used.
  IF (v_request.client_generation IS NULL AND (v_client.confirmed OR v_request.schema_reset))
     OR (v_request.client_generation IS NOT NULL AND v_schema.version = 0) THEN
    PERFORM synchro._raise('invalid_schema_reference', jsonb_build_object('received_schema', v_request.schema));
  ELSIF v_client.retired_at IS NOT NULL THEN
    PERFORM synchro._raise('client_retired');
  ELSIF v_request.seed_receipts IS NOT NULL THEN
    PERFORM synchro._raise('invalid_request', '{"message":"this server accepts no seed receipts"}');
  END IF;

  SELECT p.* INTO STRICT v_progress FROM synchro.progress p;
  PERFORM synchro._check_stream(v_progress);
  SELECT m.* INTO STRICT v_manifest FROM synchro.manifest m WHERE m.schema_version = v_progress.schema_version;
  v_client := synchro._client_generation(v_client, p_user_id, v_request.client_id, v_request.client_generation);
  v_assigned := synchro._reconcile_assignment(v_client);
  v_action := synchro._schema_action(v_schema.version, v_schema.hash, v_request.schema_reset, v_manifest.schema_version, v_assigned.o_scopes);
  v_updates := synchro._cursor_updates(v_client, v_request.known_scopes, v_assigned.o_scopes, v_progress, v_manifest.schema_hash,
    CASE WHEN v_action.o_action = 'unsupported' THEN 'none'
         WHEN v_request.client_generation <> v_client.client_generation OR v_action.o_reset THEN 'null' ELSE 'bridge' END, v_action.o_affected);

  RETURN '{"server_time":' || to_json(synchro._wire_time(clock_timestamp()))
    || ',"protocol_version":3,"client_generation":' || v_client.client_generation
    || ',"scope_set_version":' || v_assigned.o_scope_set_version
    || ',"schema":{"version":' || v_manifest.schema_version || ',"hash":"' || v_manifest.schema_hash
    || '","action":"' || v_action.o_action || coalesce('","reason":"' || v_action.o_reason, '') || '"}'
    || ',"scopes":' || synchro._scope_delta(v_assigned.o_scopes, 
         ARRAY(SELECT k.scope_id FROM json_object_keys(v_request.known_scopes) k (scope_id) ORDER BY k.scope_id COLLATE "C"))
    || ',"scope_cursor_updates":' || v_updates
    || CASE WHEN v_action.o_action IN ('replace', 'rebuild_local') THEN ',"schema_definition":' || v_manifest.body ELSE '' END
    || CASE WHEN v_action.o_action = 'rebuild_local' THEN ',"affected_scopes":' || array_to_json(v_action.o_affected) ELSE '' END
    || '}';
END
$fn$;
