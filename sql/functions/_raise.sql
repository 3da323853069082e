CREATE FUNCTION synchro._raise(p_name text, p_detail jsonb DEFAULT NULL) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Raises a wire error of protocol/errcodes.txt; the endpoint answers it through _error_body.
-- p_name: the error's name. p_detail: further members of the error object; "message" replaces the usual text
-- (a constant, never data). Never returns.
DECLARE
  v_state text := (SELECT e.sqlstate FROM synchro.errcode e WHERE e.name = p_name AND e.http_status IS NOT NULL);
BEGIN
  IF v_state IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'XX000', MESSAGE = 'no such wire error';
  END IF;
  RAISE EXCEPTION USING ERRCODE = v_state, MESSAGE = replace(p_name, '_', ' '), DETAIL = coalesce(p_detail::text, '');
END
$fn$;
