CREATE FUNCTION synchro._change_registration(p_relation oid, p_old synchro.registration, p_new synchro.registration, p_affected text[])
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Registers a registered table anew: p_old as it is, p_new as asked for. Nothing happens when they are equal.
-- While capture is blocked because of the relation, all its rows are read anew in any case.
-- Errors: 22023 for affected scopes without a changed rule.
DECLARE
  v_new  synchro.registration := p_new;
  v_same boolean;
  v_base bigint;
BEGIN
  v_new.generation := p_old.generation;
  v_new.rel_no := p_old.rel_no;
  v_new.since := p_old.since;
  v_new.amends := p_old.amends;
  v_same := (v_new.membership_function, v_new.membership_hash) = (p_old.membership_function, p_old.membership_hash);
  IF v_same THEN
    v_new.membership_twin := p_old.membership_twin;
    v_new.twin_hash := p_old.twin_hash;
  END IF;
  IF (v_new.kind, v_new.key_column, v_new.key_attnum, v_new.key_type, v_new.pk_type, v_new.created_at_column, v_new.updated_at_column,
      v_new.deleted_at_column, v_new.sync_columns, v_new.text_columns, v_new.required_columns)
     IS DISTINCT FROM (p_old.kind, p_old.key_column, p_old.key_attnum, p_old.key_type, p_old.pk_type, p_old.created_at_column,
      p_old.updated_at_column, p_old.deleted_at_column, p_old.sync_columns, p_old.text_columns, p_old.required_columns)
     OR synchro._is_blocked(p_old.rel_no) THEN
    IF p_affected <> '{}' THEN
      RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'p_affected_scopes belongs to a changed membership rule only';
    END IF;
    PERFORM synchro._replace_registration(p_relation, p_old, v_new);
    RETURN;
  END IF;
  IF p_affected <> '{}' AND (v_new.membership_function, v_new.membership_hash, v_new.composition, v_new.max_scope_fanout)
                            = (p_old.membership_function, p_old.membership_hash, p_old.composition, p_old.max_scope_fanout) THEN
    SELECT g.base INTO v_base FROM synchro.registry_generation g WHERE g.generation = p_old.generation AND g.xid = pg_current_xact_id();
    IF p_old.rel_no NOT IN (SELECT synchro._changed_rules(v_base, p_old.generation)) THEN
      RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'p_affected_scopes belongs to a changed membership rule only',
        HINT = 'register changed dependencies first';
    END IF;
  ELSIF v_new IS NOT DISTINCT FROM p_old THEN
    RETURN;
  END IF;
  v_new.generation := synchro._open_generation();
  DELETE FROM synchro.registration WHERE generation = v_new.generation AND rel_no = p_old.rel_no;
  INSERT INTO synchro.registration SELECT v_new.*;
  DELETE FROM synchro.declared_scope WHERE generation = v_new.generation AND rel_no = p_old.rel_no;
  INSERT INTO synchro.declared_scope (generation, rel_no, scope_id)
  SELECT DISTINCT v_new.generation, p_old.rel_no, s FROM unnest(p_affected) s;
END
$fn$;
