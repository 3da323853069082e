CREATE FUNCTION synchro._check_function_reads(p_function oid, p_target synchro.registration, p_relation_id uuid) RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- A function reads only the projections of its target and of what that depends on. Errors: undeclared_dependency, missing_privilege.
DECLARE
  v_owner oid := (SELECT f.proowner FROM pg_proc f WHERE f.oid = p_function);
  v_read  record;
BEGIN
  FOR v_read IN
    SELECT DISTINCT l.rel_no, l.relation_oid, v.oid::regclass AS view
      FROM pg_depend d
      JOIN pg_class v ON v.oid = d.refobjid AND v.relnamespace = 'synchro_projection'::regnamespace
      JOIN synchro.relation l ON l.view_name = v.relname
     WHERE d.classid = 'pg_proc'::regclass AND d.objid = p_function AND d.refclassid = 'pg_class'::regclass
  LOOP
    IF v_read.rel_no <> p_target.rel_no AND NOT EXISTS (
         SELECT FROM synchro.membership_dependency d WHERE d.generation = p_target.generation
            AND d.target_rel_no = p_target.rel_no AND d.source_rel_no = v_read.rel_no) THEN
      PERFORM synchro._refuse('undeclared_dependency', format('function %s reads %s, which is not declared', p_function::regprocedure, v_read.view),
        'declare it with synchro_register_membership_dependency', p_relation_id);
    ELSIF NOT has_table_privilege(v_owner, v_read.relation_oid, 'SELECT') THEN
      PERFORM synchro._refuse('missing_privilege', 'the function''s owner cannot read the source relation',
                              format('GRANT SELECT ON %s TO %s', v_read.relation_oid::regclass, v_owner::regrole), p_relation_id);
    END IF;
  END LOOP;
END
$fn$;
