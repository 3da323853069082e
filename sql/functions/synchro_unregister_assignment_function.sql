CREATE FUNCTION synchro.synchro_unregister_assignment_function() RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- From the next connect or pull on only default, shared and granted scopes are assigned. Errors: 55000 when there is none.
BEGIN
  DELETE FROM synchro.assignment_function;
  IF NOT FOUND THEN
    RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = 'no assignment function is registered';
  END IF;
END
$fn$;
