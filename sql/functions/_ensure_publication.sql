CREATE FUNCTION synchro._ensure_publication() RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- For the worker, before it makes its slot: a slot that is older than the publication cannot decode what came before it.
-- Errors: invalid_configuration. Locks: registration waits until the end of this transaction.
BEGIN
  PERFORM synchro._registration_lock();
  PERFORM synchro._create_publication();
END
$fn$;
