CREATE FUNCTION synchro.synchro_pull(p_user_id text, p_request text, p_claims jsonb DEFAULT NULL)
RETURNS TABLE (status int, body text, wait_on bigint[]) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- POST /sync/pull: one page of effects over the client's scopes, from materialized state alone (docs/protocol.md).
-- p_user_id: the authenticated user. p_request: the body. Returns status and exact body; a refusal leaves nothing behind.
-- wait_on: what would change an answer that says nothing new, in the worker's numbers (docs/architecture.md): the client's scopes;
-- 0, a scope's first effect, when one of them has had none; for capture_pending the client's push. Else NULL.
-- Errors: 25000 below REPEATABLE READ; errors of another class than SY are operational and propagate.
DECLARE
  v_page   record;
  v_state  text;
  v_detail text;
BEGIN
  v_page := synchro._pull_quick(p_user_id, p_request);
  IF v_page.o_body IS NULL THEN
    PERFORM synchro._require_snapshot();
    v_page := synchro._pull(p_user_id, p_request);
  END IF;
  status := 200;
  body := v_page.o_body;
  wait_on := v_page.o_wait_on;
  RETURN NEXT;
EXCEPTION WHEN SQLSTATE 'SY000' THEN
  GET STACKED DIAGNOSTICS v_state = RETURNED_SQLSTATE, v_detail = PG_EXCEPTION_DETAIL;
  RETURN QUERY SELECT e.status, e.body, CASE v_state WHEN 'SY013' THEN synchro._push_wait(p_request) END
                 FROM synchro._error_body(v_state, v_detail) e;
END
$fn$;
