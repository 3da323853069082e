CREATE FUNCTION synchro._capturing_generation() RETURNS bigint LANGUAGE sql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- The oldest generation that rows which are written now may be materialized with: the newest that needs no staging, since it is active from its
-- commit on, or the active one. One that is being built does not count yet.
SELECT max(g.generation) FROM synchro.registry_generation g, synchro.progress p
 WHERE g.generation = p.registry_generation
    OR (g.generation > p.registry_generation AND NOT g.staged AND g.schema_version IS NOT NULL)
$fn$;
