CREATE FUNCTION synchro._complete_generation() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- At commit of a registering transaction: validates what it changed as a whole, baselines its new relations, makes the manifest
-- and puts the activation into the WAL. Any error rolls the registration back.
-- Relations that left are published up to here: what this transaction changed in them has row events for its fences. Those of a staged
-- generation stay published until it is active.
DECLARE
  v_reg            record;
  v_rematerialized uuid[] := '{}';
  v_changed        int[] := ARRAY(SELECT synchro._changed_rules(NEW.base, NEW.generation));
  v_staged         boolean;
BEGIN
  IF EXISTS (SELECT FROM synchro.declared_scope d WHERE d.generation = NEW.generation AND d.rel_no <> ALL (v_changed)) THEN
    RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'p_affected_scopes belongs to a changed membership rule only',
      HINT = 'leave it out where no rule of a registered table changes';
  END IF;
  -- Behind a generation that is being staged, every other one waits.
  v_staged := v_changed <> '{}' OR EXISTS (
    SELECT FROM synchro.registry_generation g
     WHERE g.staged AND g.generation < NEW.generation AND g.generation > (SELECT p.registry_generation FROM synchro.progress p)
       AND NOT EXISTS (SELECT FROM synchro.backfill b WHERE b.generation = g.generation AND b.state = 'rejected'));
  PERFORM synchro._check_dependencies(NEW.generation);
  PERFORM synchro._complete_rules(NEW.generation);
  FOR v_reg IN
    SELECT r.rel_no, r.kind, l.table_id FROM synchro.registration r JOIN synchro.relation l ON l.rel_no = r.rel_no
     WHERE r.generation = NEW.generation AND r.since = NEW.generation ORDER BY r.rel_no
  LOOP
    IF synchro._baseline(v_reg.rel_no, NEW.generation) > 0 AND v_reg.kind = 'synced' THEN
      v_rematerialized := v_rematerialized || v_reg.table_id;
      PERFORM synchro._check_representable(v_reg.rel_no, NEW.generation);
    END IF;
  END LOOP;
  PERFORM synchro._index_projections(NEW.generation);
  PERFORM synchro._unpublish(r.prrelid)
     FROM pg_publication_rel r JOIN pg_publication b ON b.oid = r.prpubid JOIN synchro.relation l ON l.relation_oid = r.prrelid
    WHERE NOT v_staged AND b.pubname = current_setting('synchro.publication_name')
      AND NOT EXISTS (SELECT FROM synchro.registration g WHERE g.generation = NEW.generation AND g.rel_no = l.rel_no);
  UPDATE synchro.registry_generation SET schema_version = synchro._publish_manifest(NEW.generation, v_rematerialized), staged = v_staged
   WHERE generation = NEW.generation;
  PERFORM synchro._emit_activation(NEW.generation);
  PERFORM synchro._seal_registration();
  RETURN NULL;
END
$fn$;
CREATE CONSTRAINT TRIGGER complete_generation AFTER INSERT ON synchro.registry_generation
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION synchro._complete_generation();
