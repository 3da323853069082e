CREATE FUNCTION synchro._issue_table_id(p_rel_no int) RETURNS uuid LANGUAGE sql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- The relation's table id, made at the first call and never changed.
UPDATE synchro.relation SET table_id = coalesce(table_id, gen_random_uuid()) WHERE rel_no = p_rel_no RETURNING table_id
$fn$;
