CREATE FUNCTION synchro._refuse(p_reason text, p_message text, p_hint text,
                                p_relation_id uuid DEFAULT NULL, p_field_id uuid DEFAULT NULL)
RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Refuses a registration: raises the reason's SQLSTATE with the error object of docs/registration.md as DETAIL.
-- p_reason: a name of protocol/errcodes.txt. p_hint: what the user can do. Never returns.
DECLARE
  v_state  text := (SELECT e.sqlstate FROM synchro.errcode e WHERE e.name = p_reason);
  v_detail text := jsonb_build_object('error', jsonb_strip_nulls(jsonb_build_object(
    'code', 'invalid_registration', 'reason', p_reason, 'relation_id', p_relation_id, 'field_id', p_field_id)))::text;
BEGIN
  RAISE EXCEPTION USING ERRCODE = v_state, MESSAGE = p_message, DETAIL = v_detail, HINT = p_hint;
END
$fn$;
