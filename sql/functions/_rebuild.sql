CREATE FUNCTION synchro._rebuild(p_user_id text, p_request text) RETURNS text LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- The body of a successful rebuild page. The first page of a session stages the scope, or shares a stage; later pages, and
-- repetitions, come from the stage alone. Errors: class SY; 40001.
DECLARE
  v_client   synchro.client := synchro._open_request('rebuild', p_user_id, p_request);
  v_request  record;
  v_progress synchro.progress;
  v_session  synchro.rebuild_session;
  v_token    jsonb;
  v_assigned boolean;
  v_page     text;
BEGIN
  SELECT r.* INTO v_request
    FROM json_to_record(p_request::json) AS r (client_generation bigint, schema json, scope text, rebuild_id uuid, cursor text, "limit" int);
  v_progress := synchro._check_gates(v_client, v_request.client_generation, v_request.schema);
  IF v_request.cursor IS NOT NULL THEN
    v_token := synchro._token_open('rebuild', v_request.cursor);
    IF (v_token ->> 'u', v_token ->> 'c', v_token ->> 's', v_token ->> 'i', v_token ->> 'n')
       IS DISTINCT FROM (v_client.user_id, v_client.client_id, v_request.scope, v_request.rebuild_id::text, v_request."limit"::text) THEN
      PERFORM synchro._raise('invalid_request', '{"message":"invalid request: cursor: not a continuation of this attempt"}');
    END IF;
  END IF;
  v_assigned := EXISTS (SELECT FROM synchro.client_scope s
                         WHERE s.client_no = v_client.client_no AND s.scope_id = v_request.scope AND s.assigned);
  SELECT s.* INTO v_session FROM synchro.rebuild_session s
   WHERE s.client_no = v_client.client_no AND s.rebuild_id = v_request.rebuild_id;

  IF v_session.client_no IS NULL AND v_token IS NULL THEN
    IF NOT v_assigned THEN
      PERFORM synchro._raise('invalid_request', '{"message":"invalid request: scope: not assigned to this client"}');
    END IF;
    PERFORM synchro._check_capture(v_progress, v_client);
    v_session := synchro._open_rebuild(v_client, v_request.scope, v_request.rebuild_id, v_request."limit", v_progress);
  ELSIF (v_session.scope_id, v_session.page_limit) <> (v_request.scope, v_request."limit") THEN
    PERFORM synchro._raise('invalid_request', '{"message":"invalid request: rebuild_id: used before with another scope or limit"}');
  ELSE
    PERFORM synchro._check_stream(v_progress);
  END IF;

  IF v_assigned AND v_session.client_generation = v_client.client_generation AND v_session.write_epoch = v_client.accepted_write_epoch
     AND v_session.expires_at > now() AND coalesce(v_token ->> 'st' = v_session.stage_no::text, v_token IS NULL) THEN
    v_page := synchro._rebuild_page(v_client, v_session, v_token);
  END IF;
  IF v_page IS NULL THEN
    PERFORM synchro._raise('rebuild_restart_required', jsonb_build_object('scope_id', v_request.scope));
  END IF;
  RETURN v_page;
END
$fn$;
