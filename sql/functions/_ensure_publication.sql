CREATE FUNCTION synchro._ensure_publication() RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- For the worker, before it makes its slot: a slot that is older than the publication cannot decode what came before it.
-- What an extension that was dropped has left in it goes. Errors: invalid_configuration.
-- Locks: registration waits until the end of this transaction.
BEGIN
  PERFORM synchro._registration_lock();
  PERFORM synchro._create_publication();
  PERFORM synchro._unpublish(r.prrelid)
     FROM pg_publication_rel r JOIN pg_publication b ON b.oid = r.prpubid
    WHERE b.pubname = current_setting('synchro.publication_name')
      AND NOT EXISTS (SELECT FROM synchro.registration g JOIN synchro.relation l ON l.rel_no = g.rel_no
                       WHERE l.relation_oid = r.prrelid AND g.generation = synchro._newest_generation());
END
$fn$;
