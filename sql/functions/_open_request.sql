CREATE FUNCTION synchro._open_request(p_kind text, p_user_id text, p_request text) RETURNS synchro.client LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- First checks of every request, in the order of docs/protocol.md: credential, client binding, version gates, shape, retirement.
-- p_kind: connect, push, pull or rebuild. Returns the client's row; all NULL for a client that connects for the first time.
-- Connect judges retirement itself, after the schema reference. Afterwards p_request::json is known to be exact.
-- Errors: SY003, SY009, SY001, SY002, SY005. Locks: connect and push hold the client's row, so its requests take turns.
DECLARE
  v_client    synchro.client;
  v_client_id text;
BEGIN
  IF coalesce(p_user_id, '') = '' OR octet_length(p_user_id) > 255 OR NOT synchro._representable('text'::regtype, false, p_user_id) THEN
    PERFORM synchro._raise('auth_required', '{"message":"the user id is not usable"}');
  END IF;
  v_client_id := synchro._request_client(p_request);
  IF p_kind IN ('connect', 'push') THEN
    SELECT c.* INTO v_client FROM synchro.client c WHERE c.client_id = v_client_id FOR NO KEY UPDATE;
  ELSE
    SELECT c.* INTO v_client FROM synchro.client c WHERE c.client_id = v_client_id;
  END IF;
  IF v_client.user_id <> p_user_id THEN
    PERFORM synchro._raise('auth_required', '{"message":"the client id is another user''s"}');
  END IF;
  IF synchro._request(p_kind, p_request) IS NULL THEN
    PERFORM synchro._raise('invalid_request');
  END IF;
  IF p_kind <> 'connect' THEN
    IF v_client.client_no IS NULL THEN
      PERFORM synchro._raise('invalid_request', '{"message":"invalid request: client_id: this client has never connected"}');
    ELSIF v_client.retired_at IS NOT NULL THEN
      PERFORM synchro._raise('client_retired');
    END IF;
  END IF;
  RETURN v_client;
END
$fn$;
