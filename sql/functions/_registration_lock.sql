CREATE FUNCTION synchro._registration_lock() RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Serializes registration: held to the end of the transaction. The worker never takes this lock.
-- Errors: 25000 outside READ COMMITTED (a later statement must see what an earlier registration committed).
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION USING ERRCODE = '25000', MESSAGE = 'registration requires isolation level READ COMMITTED',
      HINT = 'BEGIN ISOLATION LEVEL READ COMMITTED';
  END IF;
  LOCK TABLE synchro.registry_generation IN SHARE ROW EXCLUSIVE MODE;
END
$fn$;
