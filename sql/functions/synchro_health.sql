CREATE FUNCTION synchro.synchro_health() RETURNS jsonb LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- {"ready": true} when every check of synchro_health_detail() is ok.
SELECT jsonb_build_object('ready', bool_and(h.state = 'ok')) FROM synchro._health_checks() h
$fn$;
