CREATE FUNCTION synchro.synchro_accept_restore() RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Opens a database that was restored from a dump, after everything is registered again (docs/operations.md, "Dumps"): a new stream begins.
-- Clients of before are expired, so that each gets a new generation and rebuilds; what they had pushed is in the tables.
-- Of projections that the dump brought along nothing stays.
-- Errors: 55000 unless the database was restored from a dump, or while a table has the triggers of a registration that it no longer has.
DECLARE
  v_count int;
  v_names text;
  v_old   record;
BEGIN
  PERFORM synchro._registration_lock();
  IF NOT EXISTS (SELECT FROM synchro.progress p WHERE p.database_oid = 0) THEN
    RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = 'the database was not restored from a dump',
      HINT = 'this does not help a promoted standby or a restored base backup: see "Beginning anew" in docs/operations.md';
  END IF;
  SELECT count(*), string_agg(t.tgrelid::regclass::text, ', ' ORDER BY t.tgrelid::regclass::text COLLATE "C") INTO v_count, v_names FROM pg_trigger t
   WHERE t.tgfoid = 'synchro.synchro_fence()'::regprocedure AND t.tgparentid = 0
     AND NOT EXISTS (SELECT FROM synchro.registration r JOIN synchro.relation l ON l.rel_no = r.rel_no
                      WHERE l.relation_oid = t.tgrelid AND r.generation = synchro._newest_generation());
  IF v_count > 0 THEN
    RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = format('%s tables were registered before the dump and are not now', v_count), DETAIL = v_names,
      HINT = 'register them, or drop the triggers synchro_fence, synchro_key_guard and synchro_truncate_guard of those that are not to be any more';
  END IF;
  FOR v_old IN
    SELECT c.oid::regclass AS name, CASE c.relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END AS kind FROM pg_class c
     WHERE (c.relkind = 'v' AND c.relnamespace = 'synchro_projection'::regnamespace AND NOT EXISTS (SELECT FROM synchro.relation l WHERE l.view_name = c.relname))
        OR (c.relkind = 'r' AND c.relnamespace = 'synchro_data'::regnamespace
            AND NOT EXISTS (SELECT FROM synchro.relation l WHERE c.relname ~ format('^(r_%s|s_%1$s_[0-9]+)$', l.rel_no)))
     ORDER BY c.relkind DESC
  LOOP
    BEGIN
      EXECUTE format('DROP %s %s', v_old.kind, v_old.name);
    EXCEPTION WHEN dependent_objects_still_exist THEN -- functions of the application that no rule has
      IF v_old.kind = 'TABLE' THEN
        EXECUTE format('TRUNCATE %s', v_old.name);
      END IF;
    END;
  END LOOP;
  UPDATE synchro.client SET expired = true WHERE retired_at IS NULL;
  INSERT INTO synchro.client_materialized (client_no, write_epoch)
  SELECT c.client_no, c.accepted_write_epoch FROM synchro.client c
      ON CONFLICT (client_no) DO UPDATE SET write_epoch = excluded.write_epoch;
  UPDATE synchro.progress p SET (system_identifier, timeline, database_oid) = (SELECT i.system_identifier, i.timeline, i.database_oid FROM synchro._stream_identity() i);
  PERFORM synchro._worker_wake();
END
$fn$;
