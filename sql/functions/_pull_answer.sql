CREATE FUNCTION synchro._pull_answer(p_user_id text, p_request text)
RETURNS TABLE (status int, body text, wait_on bigint[]) LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- The long way of a pull, refusals included: status and exact body; a refusal leaves nothing behind. Parameters and results as of synchro_pull.
DECLARE
  v_page   record;
  v_state  text;
  v_detail text;
BEGIN
  PERFORM synchro._require_snapshot();
  v_page := synchro._pull(p_user_id, p_request);
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
