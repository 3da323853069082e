CREATE FUNCTION synchro.synchro_unregister_shared_scope(p_scope_id text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Takes the shared scope from every client that has it by no other way. Errors: 55000 when it is not registered.
BEGIN
  DELETE FROM synchro.shared_scope WHERE scope_id = p_scope_id;
  IF NOT FOUND THEN
    RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = 'the scope is not a registered shared scope';
  END IF;
END
$fn$;
