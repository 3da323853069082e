CREATE FUNCTION synchro._fence_key() RETURNS bytea LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- The MAC key of fence messages, 16 octets: for the worker only.
SELECT k.secret FROM synchro.secret_key k WHERE k.purpose = 'fence' AND k.state = 'active'
$fn$;
