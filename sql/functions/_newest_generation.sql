CREATE FUNCTION synchro._newest_generation() RETURNS bigint LANGUAGE sql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- The newest generation that is active, may become so, or is being built: registrations start from it.
SELECT max(g.generation) FROM synchro.registry_generation g
 WHERE NOT EXISTS (SELECT FROM synchro.backfill b WHERE b.generation = g.generation AND b.state = 'rejected')
$fn$;
