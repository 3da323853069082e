CREATE FUNCTION synchro._wire_time(p_time timestamptz) RETURNS text LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Portable datetime: UTC with six fractional digits.
BEGIN
  RETURN to_char(p_time AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"');
END
$fn$;
