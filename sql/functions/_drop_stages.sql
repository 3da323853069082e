CREATE FUNCTION synchro._drop_stages() RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- For the worker: drops the tables of _stage_baseline whose generation it has taken from there what it needs: one that is active or gone by,
-- waits, or was rejected. Errors: 55P03 as the caller's lock_timeout says.
DECLARE
  v_stage name;
BEGIN
  FOR v_stage IN
    SELECT c.relname FROM pg_class c
     WHERE c.relnamespace = 'synchro_data'::regnamespace AND c.relname ~ '^s_[0-9]+_[0-9]+$'
       AND (split_part(c.relname, '_', 3)::bigint <= (SELECT p.registry_generation FROM synchro.progress p)
            OR split_part(c.relname, '_', 3)::bigint IN (SELECT b.generation FROM synchro.backfill b))
  LOOP
    EXECUTE format('DROP TABLE synchro_data.%I', v_stage);
  END LOOP;
END
$fn$;
