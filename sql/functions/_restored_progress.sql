CREATE FUNCTION synchro._restored_progress() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- The one row of progress is made at installation; another one comes from a dump. It makes the row that is there one of a stream of no
-- database, in a later generation than the dumped one: nothing is captured and nothing served until synchro_accept_restore().
BEGIN
  UPDATE synchro.progress SET database_oid = 0, stream_generation = greatest(stream_generation, NEW.stream_generation) + 1;
  RETURN NULL;
END
$fn$;
CREATE TRIGGER restored BEFORE INSERT ON synchro.progress FOR EACH ROW EXECUTE FUNCTION synchro._restored_progress();
ALTER TABLE synchro.progress ENABLE ALWAYS TRIGGER restored;
