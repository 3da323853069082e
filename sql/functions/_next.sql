CREATE FUNCTION synchro._next(p_counter bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- What comes after a counter that travels. Errors: SY011 at the end of the range that every reader of JSON keeps exact; it never wraps.
BEGIN
  IF p_counter >= 9007199254740991 THEN
    PERFORM synchro._raise('sync_integrity_failure');
  END IF;
  RETURN p_counter + 1;
END
$fn$;
