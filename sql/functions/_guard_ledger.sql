-- The row of a retired client is the record of its retirement: immutable. Only then may its ledgers be deleted.
CREATE TRIGGER refuse_change BEFORE UPDATE OR DELETE ON synchro.client
  FOR EACH ROW WHEN (OLD.retired_at IS NOT NULL) EXECUTE FUNCTION synchro._refuse_change('the record of a retired client is immutable');
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON synchro.client
  FOR EACH STATEMENT EXECUTE FUNCTION synchro._refuse_change('clients and their ledgers are not truncated');
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON synchro.push_batch
  FOR EACH STATEMENT EXECUTE FUNCTION synchro._refuse_change('clients and their ledgers are not truncated');
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON synchro.push_mutation
  FOR EACH STATEMENT EXECUTE FUNCTION synchro._refuse_change('clients and their ledgers are not truncated');

CREATE FUNCTION synchro._guard_ledger() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Ledgers are what exact replay answers from: they go only after their client is retired. Errors: 55000.
BEGIN
  IF EXISTS (SELECT FROM synchro.client c WHERE c.client_no = OLD.client_no AND c.retired_at IS NULL) THEN
    RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = 'the ledger of a client that is not retired is kept',
                          HINT = 'Call synchro.synchro_retire_client() first.';
  END IF;
  RETURN OLD;
END
$fn$;
CREATE TRIGGER guard_ledger BEFORE DELETE ON synchro.push_batch FOR EACH ROW EXECUTE FUNCTION synchro._guard_ledger();
CREATE TRIGGER guard_ledger BEFORE DELETE ON synchro.push_mutation FOR EACH ROW EXECUTE FUNCTION synchro._guard_ledger();
