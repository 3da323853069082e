CREATE FUNCTION synchro._complete_generation() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- At commit of a registering transaction: validates what it changed as a whole, baselines its new relations, makes the manifest
-- and puts the activation into the WAL. Any error rolls the registration back.
-- Relations that left are published up to here: what this transaction changed in them has row events for its fences. Those of a staged
-- generation stay published until it is active.
DECLARE
  v_reg            synchro.registration;
  v_registered     int[] := '{}';      -- relations that were registered, or registered anew
  v_rematerialized uuid[] := '{}';
  v_changed        int[];
  v_distrusted     boolean := false;   -- rows of a relation in use were read anew because those that are materialized are not trusted
  v_staged         boolean;
BEGIN
  PERFORM synchro._check_dependencies(NEW.generation);
  PERFORM synchro._complete_rules(NEW.generation);
  FOR v_reg IN
    SELECT r.* FROM synchro.registration r WHERE r.generation = NEW.generation AND r.since = NEW.generation ORDER BY r.rel_no
  LOOP
    v_registered := v_registered || v_reg.rel_no;
    IF synchro._is_held(v_reg.rel_no) THEN
      v_rematerialized := v_rematerialized || synchro._stage_baseline(v_reg);
      v_distrusted := v_distrusted OR synchro._is_blocked(v_reg.rel_no);
    ELSIF synchro._baseline(v_reg.rel_no, NEW.generation, format('r_%s', v_reg.rel_no)::name) > 0 AND v_reg.kind = 'synced' THEN
      v_rematerialized := v_rematerialized || (SELECT l.table_id FROM synchro.relation l WHERE l.rel_no = v_reg.rel_no);
      PERFORM synchro._check_representable(v_reg.rel_no, NEW.generation, format('r_%s', v_reg.rel_no)::name);
    END IF;
  END LOOP;
  -- A relation that is read anew is evaluated anew as a whole, whatever its rule; where others are staged, it is too.
  v_changed := ARRAY(SELECT c FROM synchro._changed_rules(NEW.base, NEW.generation) c
                      WHERE NOT EXISTS (SELECT FROM synchro.registration r
                                         WHERE r.generation = NEW.generation AND r.rel_no = c AND r.since = NEW.generation));
  IF EXISTS (SELECT FROM synchro.declared_scope d WHERE d.generation = NEW.generation AND d.rel_no <> ALL (v_changed)) THEN
    RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'p_affected_scopes belongs to a changed membership rule only',
      HINT = 'leave it out where no rule of a registered table changes';
  END IF;
  -- Behind a generation that is being staged, every other one waits.
  v_staged := v_changed <> '{}' OR EXISTS (
    SELECT FROM synchro.registry_generation g
     WHERE g.staged AND g.generation < NEW.generation AND g.generation > (SELECT p.registry_generation FROM synchro.progress p)
       AND NOT EXISTS (SELECT FROM synchro.backfill b WHERE b.generation = g.generation AND b.state = 'rejected'));
  -- The way out of a block is followed at once: nothing is staged while capture is blocked.
  IF v_staged AND v_distrusted THEN
    RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = 'a block cannot be answered while rules are changed',
      HINT = 'first register the table that blocks, in a transaction that changes no other table''s rule; synchro_withdraw_rules() takes pending changes back';
  END IF;
  PERFORM synchro._index_projections(NEW.generation);
  PERFORM synchro._unpublish(r.prrelid)
     FROM pg_publication_rel r JOIN pg_publication b ON b.oid = r.prpubid JOIN synchro.relation l ON l.relation_oid = r.prrelid
    WHERE NOT v_staged AND b.pubname = current_setting('synchro.publication_name')
      AND NOT EXISTS (SELECT FROM synchro.registration g WHERE g.generation = NEW.generation AND g.rel_no = l.rel_no);
  UPDATE synchro.registry_generation SET schema_version = synchro._publish_manifest(NEW.generation, v_rematerialized), staged = v_staged
   WHERE generation = NEW.generation;
  IF v_staged AND EXISTS (SELECT FROM synchro._drift() d WHERE d."check" = 'columns' AND d.rel_no = ANY (v_registered)) THEN
    RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = 'a captured column cannot be dropped or retyped while rules are changed',
      HINT = 'register the table without the column now, and change it once that is in force';
  END IF;
  PERFORM synchro._renew_fences(v_registered); -- what is written from the commit on
  PERFORM synchro._emit_activation(NEW.generation);
  PERFORM synchro._seal_registration();
  RETURN NULL;
END
$fn$;
CREATE CONSTRAINT TRIGGER complete_generation AFTER INSERT ON synchro.registry_generation
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION synchro._complete_generation();
