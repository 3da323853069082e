CREATE FUNCTION synchro.synchro_table_id(p_table_name text) RETURNS text LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- The table's logical id, issued at the first call and never changed: to splice as a literal into an impact function, which may come
-- before the table's registration. Errors: refusals of the name.
DECLARE
  v_oid oid := synchro._resolve_relation(p_table_name);
  v_id  uuid;
BEGIN
  SELECT l.table_id INTO v_id FROM synchro.relation l WHERE l.relation_oid = v_oid AND synchro._is_held(l.rel_no);
  IF v_id IS NULL THEN
    PERFORM synchro._registration_lock();
    PERFORM synchro._renew_relation(v_oid);
    v_id := synchro._issue_table_id(synchro._capture_columns(v_oid, '{}'));
  END IF;
  RETURN v_id::text;
END
$fn$;
