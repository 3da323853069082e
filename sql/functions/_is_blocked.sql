CREATE FUNCTION synchro._is_blocked(p_rel_no int) RETURNS boolean LANGUAGE sql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Is capture blocked because of the relation, or was it and its recovery is not over?
SELECT EXISTS (SELECT FROM synchro.quarantine q WHERE q.resolved_at IS NULL AND q.rel_no = p_rel_no)
    OR EXISTS (SELECT FROM synchro.capture_recovery c WHERE c.rel_no = p_rel_no)
$fn$;
