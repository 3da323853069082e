CREATE FUNCTION synchro._page_octets() RETURNS bigint LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Row content that a page holds at most, unless a single row is larger: far below what a server can assemble and a client takes.
SELECT 16777216::bigint
$fn$;
