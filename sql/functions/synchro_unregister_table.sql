CREATE FUNCTION synchro.synchro_unregister_table(p_table_name text) RETURNS void LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Takes a table out of sync: an incompatible (Class 4) manifest step for its clients. What other tables depend on is refused at commit
-- (undeclared_dependency). Errors: 55000 when the table is not synced; refusals of the name.
SELECT synchro._unregister_relation(p_table_name, 'synced')
$fn$;
