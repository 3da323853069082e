CREATE FUNCTION synchro.synchro_health_detail() RETURNS jsonb LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Every check by name: {"state": ok|failed|unknown, "reason": code, "value": number}. For operators and monitors.
SELECT jsonb_object_agg(h."check", jsonb_strip_nulls(jsonb_build_object('state', h.state, 'reason', h.reason, 'value', h.value)))
  FROM synchro._health_checks() h
$fn$;
