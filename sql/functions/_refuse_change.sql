CREATE FUNCTION synchro._refuse_change() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- A published record is immutable: UPDATE, DELETE and TRUNCATE are refused with 55000. The trigger's argument is the message.
BEGIN
  RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = TG_ARGV[0];
END
$fn$;
CREATE TRIGGER refuse_change BEFORE UPDATE OR DELETE OR TRUNCATE ON synchro.manifest
  FOR EACH STATEMENT EXECUTE FUNCTION synchro._refuse_change('a published manifest is immutable');
CREATE TRIGGER refuse_change BEFORE UPDATE OR DELETE OR TRUNCATE ON synchro.manifest_field
  FOR EACH STATEMENT EXECUTE FUNCTION synchro._refuse_change('a published manifest is immutable');
