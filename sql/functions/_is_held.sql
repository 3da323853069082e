CREATE FUNCTION synchro._is_held(p_rel_no int) RETURNS boolean LANGUAGE sql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Does the relation's projection belong to the worker, because the active generation or a committed later one has the relation?
SELECT EXISTS (SELECT FROM synchro.standing_registration r JOIN synchro.registry_generation g ON g.generation = r.generation
                WHERE r.rel_no = p_rel_no AND g.xid IS DISTINCT FROM pg_current_xact_id_if_assigned())
$fn$;
