CREATE FUNCTION synchro._fence_key() RETURNS SETOF bytea LANGUAGE sql STABLE SECURITY DEFINER ROWS 2
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- The MAC keys of fence messages, 16 octets each, the active one first: for the worker only. Messages that were signed before
-- a rotation are still in the WAL.
SELECT k.secret FROM synchro.secret_key k WHERE k.purpose = 'fence' AND k.state <> 'retired' ORDER BY k.state
$fn$;
