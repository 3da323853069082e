CREATE FUNCTION synchro._check_privileges(p_relation oid, p_push boolean) RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- The grants and policies that capture and push need. Errors: missing_privilege, row_security_required.
DECLARE
  v_missing text[];
  v_grants  text[];
  v_class   record;
BEGIN
  SELECT c.relrowsecurity, c.relforcerowsecurity, c.relowner, c.relnamespace INTO v_class FROM pg_class c WHERE c.oid = p_relation;
  SELECT array_agg(format('%s to %s', n.privilege, n.role) ORDER BY n.ord),
         array_agg(CASE n.privilege WHEN 'USAGE on its schema' THEN format('GRANT USAGE ON SCHEMA %s TO %s', v_class.relnamespace::regnamespace, n.role)
                                    ELSE format('GRANT %s ON %s TO %s', n.privilege, p_relation::regclass, n.role) END ORDER BY n.ord)
    INTO v_missing, v_grants
    FROM (VALUES (1, 'USAGE on its schema', 'synchro_owner', false), (2, 'USAGE on its schema', 'synchro_worker', false),
                 (3, 'SELECT', 'synchro_owner', false), (4, 'SELECT', 'synchro_worker', false),
                 (5, 'USAGE on its schema', 'synchro_writer', true), (6, 'SELECT', 'synchro_writer', true),
                 (7, 'INSERT', 'synchro_writer', true), (8, 'UPDATE', 'synchro_writer', true),
                 (9, 'DELETE', 'synchro_writer', true)) n(ord, privilege, role, push)
   WHERE (p_push OR NOT n.push)
     AND NOT CASE n.privilege WHEN 'USAGE on its schema' THEN has_schema_privilege(n.role, v_class.relnamespace, 'USAGE')
                              ELSE has_table_privilege(n.role, p_relation, n.privilege) END;
  IF v_missing IS NOT NULL THEN
    PERFORM synchro._refuse('missing_privilege', format('the relation lacks a grant of %s', v_missing[1]),
                            array_to_string(v_grants, '; '));
  ELSIF p_push AND NOT v_class.relrowsecurity THEN
    PERFORM synchro._refuse('row_security_required', 'push needs row-level security on the relation',
                            format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY, with policies TO synchro_writer, or register read_only', p_relation::regclass));
  ELSIF p_push AND NOT EXISTS (SELECT FROM pg_policy y WHERE y.polrelid = p_relation AND y.polpermissive
                                 AND y.polcmd IN ('*', 'a', 'w', 'd')
                                 AND (0 = ANY (y.polroles) OR EXISTS (SELECT FROM unnest(y.polroles) q
                                        WHERE pg_has_role('synchro_writer', q, 'USAGE')))) THEN
    PERFORM synchro._refuse('row_security_required', 'no policy lets synchro_writer write the relation',
                            format('CREATE POLICY ... ON %s TO synchro_writer', p_relation::regclass));
  END IF;
  -- Only a policy that hides rows from the owner would make the baseline incomplete.
  IF v_class.relforcerowsecurity AND NOT (SELECT r.rolsuper OR r.rolbypassrls FROM pg_roles r WHERE r.oid = v_class.relowner) THEN
    PERFORM synchro._refuse('row_security_required', 'forced row-level security hides rows from the baseline',
                            format('ALTER TABLE %s NO FORCE ROW LEVEL SECURITY', p_relation::regclass));
  END IF;
END
$fn$;
