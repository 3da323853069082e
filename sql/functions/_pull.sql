CREATE FUNCTION synchro._pull(p_user_id text, p_request text, OUT o_body text, OUT o_wait_on bigint[]) LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp SET jit = off AS $fn$
-- The body of a successful pull. Everything is read in one snapshot: the progress row fixes the boundary, and the state is the
-- materialized state through it. The number of statements does not depend on the number of scopes.
-- Errors: class SY; 40001 when another request of the client changed the same rows meanwhile.
DECLARE
  v_client   synchro.client := synchro._open_request('pull', p_user_id, p_request);
  v_request  record;
  v_progress synchro.progress;
  v_hash     text;
  v_cursors  record;
  v_assigned record;
  v_page     record;
  v_delta    text;
  v_rebuild  text[] := '{}';
  v_tokens   text;
  v_issued   bigint := extract(epoch FROM now()) * 1000000;
BEGIN
  SELECT r.* INTO v_request
    FROM json_to_record(p_request::json) AS r (client_generation bigint, schema json, scope_set_version bigint, scopes json, "limit" int);
  v_progress := synchro._check_gates(v_client, v_request.client_generation, v_request.schema);
  v_hash := v_request.schema ->> 'hash';
  v_cursors := synchro._open_cursors(v_client, v_request.scopes, v_progress, v_hash);
  IF v_cursors.o_refused THEN
    PERFORM synchro._raise('invalid_request', '{"message":"invalid request: scopes: a scope or a cursor that is not this client''s"}');
  ELSIF v_request.scope_set_version > v_client.scope_set_version THEN
    PERFORM synchro._raise('invalid_request', '{"message":"invalid request: scope_set_version: above the server''s"}');
  END IF;
  PERFORM synchro._check_capture(v_progress, v_client);
  IF v_cursors.o_ahead THEN
    -- An asynchronous commit was lost in a crash; the same transactions are being materialized again.
    PERFORM synchro._raise('capture_pending');
  END IF;

  v_assigned := synchro._reconcile_assignment(v_client);
  v_page := synchro._pull_page(v_cursors.o_valid, v_assigned.o_scopes, v_progress.schema_version, v_progress.commit_lsn, v_request."limit");
  v_delta := synchro._scope_delta(v_assigned.o_scopes, v_cursors.o_presented);
  SELECT string_agg(to_json(c.scope_id) || ':' || to_json(synchro._cursor_sign(
           CASE WHEN v_page.o_more THEN c.lsn ELSE v_progress.commit_lsn END,
           CASE WHEN v_page.o_more THEN c.event ELSE 9223372036854775807 END,
           CASE WHEN v_page.o_more THEN c.effect ELSE 2147483647 END,
           v_progress.stream_generation, v_client.user_id, v_client.client_id, v_client.client_generation, c.scope_id, v_hash,
           c.membership_generation, c.retention_generation, v_issued)), ',')
    INTO v_tokens FROM unnest(v_page.o_cursors) c;
  IF cardinality(v_page.o_cursors) < cardinality(v_assigned.o_scopes) THEN
    v_rebuild := ARRAY(SELECT r.scope_id FROM (SELECT unnest(v_assigned.o_scopes) EXCEPT SELECT c.scope_id FROM unnest(v_page.o_cursors) c) r (scope_id)
                        ORDER BY r.scope_id COLLATE "C");
  END IF;
  IF v_cursors.o_newer THEN
    PERFORM synchro._acknowledge(v_client, v_page.o_valid);
  END IF;

  o_body := '{"changes":[' || v_page.o_changes || '],"scope_set_version":' || v_assigned.o_scope_set_version
    || ',"scope_cursors":{' || coalesce(v_tokens, '') || '},"scope_updates":' || v_delta
    || ',"rebuild":' || array_to_json(v_rebuild) || ',"has_more":' || v_page.o_more
    || CASE WHEN v_page.o_more THEN ''
            ELSE ',"checksums":{' || synchro._checksums(v_assigned.o_scopes, v_progress.schema_version, v_hash) || '}' END
    || '}';
  IF v_page.o_changes = '' AND NOT v_page.o_more AND v_rebuild = '{}' AND v_delta = '{"add":[],"remove":[]}' THEN
    o_wait_on := ARRAY(SELECT DISTINCT coalesce(c.scope_no, 0) FROM unnest(v_page.o_cursors) c ORDER BY 1);
  END IF;
  IF v_assigned.o_scope_set_version = v_client.scope_set_version THEN
    -- What else was written may be lost: acknowledgements come again, digests are computed again.
    PERFORM set_config('synchronous_commit', 'off', true);
  END IF;
END
$fn$;
