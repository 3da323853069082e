CREATE FUNCTION synchro._require_snapshot() RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- A page, its cursors and its checksums must come from one snapshot. Errors: 25000 below REPEATABLE READ.
BEGIN
  IF current_setting('transaction_isolation') NOT IN ('repeatable read', 'serializable') THEN
    RAISE EXCEPTION USING ERRCODE = '25000', MESSAGE = 'pull and rebuild require isolation level REPEATABLE READ',
                          HINT = 'Call the function in a transaction started with BEGIN ISOLATION LEVEL REPEATABLE READ.';
  END IF;
END
$fn$;
