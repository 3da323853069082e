CREATE FUNCTION synchro._complete_generation() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- At commit of a registering transaction: validates the whole generation, baselines its new relations, makes the manifest
-- and puts the activation into the WAL. Any error rolls the registration back.
-- Relations that left are published up to here: what this transaction changed in them has row events for its fences.
DECLARE
  v_reg            record;
  v_broken         text;
  v_hash           text;
  v_rematerialized uuid[] := '{}';
BEGIN
  FOR v_reg IN
    SELECT r.*, l.table_id, l.relation_id, l.relation_oid, c.relowner
      FROM synchro.registration r JOIN synchro.relation l ON l.rel_no = r.rel_no JOIN pg_class c ON c.oid = l.relation_oid
     WHERE r.generation = NEW.generation AND r.since = NEW.generation ORDER BY r.rel_no
  LOOP
    v_hash := synchro._definition_hash(v_reg.membership_function);
    v_broken := synchro._check_function(v_reg.membership_function, 'membership', v_reg.relowner, v_reg.key_type);
    IF v_broken IS NOT NULL THEN
      PERFORM synchro._refuse('invalid_scope_function',
                              format('membership function %s breaks a rule: %s', v_reg.membership_function::regprocedure, v_broken),
                              'docs/registration.md lists the rules', v_reg.relation_id);
    ELSIF v_hash IS DISTINCT FROM v_reg.membership_hash OR v_hash IS DISTINCT FROM synchro._definition_hash(v_reg.membership_function) THEN
      PERFORM synchro._refuse('invalid_scope_function', 'the membership function changed while it was checked', NULL, v_reg.relation_id);
    END IF;
    PERFORM synchro._check_function_reads(v_reg.membership_function, v_reg.rel_no, v_reg.relation_id);
    UPDATE synchro.registration
       SET membership_twin = synchro._make_twin(v_reg.membership_function, format('m_%s_%s', v_reg.rel_no, NEW.generation)::name)
     WHERE generation = NEW.generation AND rel_no = v_reg.rel_no;
    IF synchro._baseline(v_reg.rel_no, NEW.generation) > 0 THEN
      v_rematerialized := v_rematerialized || v_reg.table_id;
      PERFORM synchro._check_representable(v_reg.rel_no, NEW.generation);
    END IF;
  END LOOP;
  PERFORM synchro._unpublish(r.prrelid)
     FROM pg_publication_rel r JOIN pg_publication b ON b.oid = r.prpubid JOIN synchro.relation l ON l.relation_oid = r.prrelid
    WHERE b.pubname = current_setting('synchro.publication_name')
      AND NOT EXISTS (SELECT FROM synchro.registration g WHERE g.generation = NEW.generation AND g.rel_no = l.rel_no);
  UPDATE synchro.registry_generation SET schema_version = synchro._publish_manifest(NEW.generation, v_rematerialized)
   WHERE generation = NEW.generation;
  PERFORM synchro._emit_activation(NEW.generation);
  PERFORM synchro._seal_registration();
  RETURN NULL;
END
$fn$;
CREATE CONSTRAINT TRIGGER complete_generation AFTER INSERT ON synchro.registry_generation
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION synchro._complete_generation();
