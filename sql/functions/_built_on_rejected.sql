CREATE FUNCTION synchro._built_on_rejected(p_generation bigint) RETURNS boolean LANGUAGE sql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Does the generation have a relation whose rows a rejected one has read?
SELECT EXISTS (SELECT FROM synchro.registration r JOIN synchro.backfill b ON b.generation = r.since AND b.state = 'rejected'
                WHERE r.generation = p_generation)
$fn$;
