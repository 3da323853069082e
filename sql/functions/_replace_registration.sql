CREATE FUNCTION synchro._replace_registration(p_relation oid, p_old synchro.registration, p_new synchro.registration) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Registers a registered relation anew, with another configuration. What is materialized is kept where no row needs to be read anew for
-- it: when its kind, the rule, the deletion column and the relation's rows are what they were. After a block nothing of it is trusted.
-- The caller holds _registration_lock(). Locks: SHARE ROW EXCLUSIVE on the relation until commit (writers wait).
DECLARE
  v_reg        synchro.registration := p_new;
  v_generation bigint := synchro._open_generation();
BEGIN
  v_reg.amends := NOT synchro._is_blocked(p_old.rel_no)
    AND (p_new.kind, p_new.composition, p_new.membership_function, p_new.membership_hash, p_new.max_scope_fanout, p_new.deleted_at_column)
        IS NOT DISTINCT FROM (p_old.kind, p_old.composition, p_old.membership_function, p_old.membership_hash, p_old.max_scope_fanout, p_old.deleted_at_column);
  IF (p_new.membership_function, p_new.membership_hash) IS NOT DISTINCT FROM (p_old.membership_function, p_old.membership_hash) THEN
    v_reg.membership_twin := p_old.membership_twin;
    v_reg.twin_hash := p_old.twin_hash;
  END IF;
  DELETE FROM synchro.registration r WHERE r.generation = v_generation AND r.rel_no = p_old.rel_no;
  PERFORM synchro._admit_relation(p_relation, v_reg);
END
$fn$;
