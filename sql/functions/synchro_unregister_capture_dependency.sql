CREATE FUNCTION synchro.synchro_unregister_capture_dependency(p_relation_name text) RETURNS void LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Ends the capture of a relation that is not synced. What tables depend on is refused at commit (undeclared_dependency).
-- Errors: 55000 when it is no capture dependency; refusals of the name.
SELECT synchro._unregister_relation(p_relation_name, 'capture_dependency')
$fn$;
