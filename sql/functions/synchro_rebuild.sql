CREATE FUNCTION synchro.synchro_rebuild(p_user_id text, p_request text, p_claims jsonb DEFAULT NULL)
RETURNS TABLE (status int, body text, wait_on bigint[]) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp SET jit = off AS $fn$
-- POST /sync/rebuild: one page of an immutable snapshot of one scope (docs/protocol.md).
-- p_user_id: the authenticated user. p_request: the body. Returns status and exact body; a refusal leaves nothing behind.
-- wait_on: as of a pull, for capture_pending.
-- Errors: 25000 below REPEATABLE READ; 40001 when another session has staged the same scope meanwhile: repeat the call, it will
-- find that stage. Errors of another class than SY are operational and propagate.
DECLARE
  v_state  text;
  v_detail text;
BEGIN
  PERFORM synchro._require_snapshot();
  RETURN QUERY SELECT 200, synchro._rebuild(p_user_id, p_request), NULL::bigint[];
EXCEPTION WHEN SQLSTATE 'SY000' THEN
  GET STACKED DIAGNOSTICS v_state = RETURNED_SQLSTATE, v_detail = PG_EXCEPTION_DETAIL;
  RETURN QUERY SELECT e.status, e.body, CASE v_state WHEN 'SY013' THEN synchro._push_wait(p_request) END
                 FROM synchro._error_body(v_state, v_detail) e;
END
$fn$;
