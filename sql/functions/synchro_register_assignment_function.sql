CREATE FUNCTION synchro.synchro_register_assignment_function(p_function text, p_max_scopes integer DEFAULT 1000)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Registers the one function (p_user_id text) RETURNS SETOF text that assigns scopes from application data; replaces the last one.
-- p_max_scopes: 1 to 1000 distinct scopes a user may get; SQL NULL: no limit. p_function NULL: nothing happens.
-- Errors: invalid_scope_function, invalid_limit.
DECLARE
  v_oid    oid;
  v_hash   text;
  v_broken text;
BEGIN
  IF p_function IS NULL THEN
    RETURN;
  ELSIF p_max_scopes NOT BETWEEN 1 AND 1000 THEN
    PERFORM synchro._refuse('invalid_limit', 'p_max_scopes must be from 1 to 1000, or NULL for no limit',
                            'NULL lets a user have any number of scopes');
  END IF;
  v_oid := synchro._resolve_function(p_function, ARRAY['text'::regtype::oid]);
  v_hash := synchro._definition_hash(v_oid);
  v_broken := synchro._check_function(v_oid, 'assignment', (SELECT r.oid FROM pg_roles r WHERE r.rolname = session_user), 'text'::regtype);
  IF v_broken IS NOT NULL THEN
    PERFORM synchro._refuse('invalid_scope_function', format('assignment function %s breaks a rule: %s', v_oid::regprocedure, v_broken),
                            'docs/registration.md lists the rules');
  ELSIF v_hash IS DISTINCT FROM synchro._definition_hash(v_oid) THEN
    PERFORM synchro._refuse('invalid_scope_function', 'the assignment function changed while it was checked',
                            'register it after its last change');
  END IF;
  INSERT INTO synchro.assignment_function AS a (function_oid, function_schema, function_name, max_scopes, definition_hash, actor)
  SELECT f.oid, n.nspname, f.proname, p_max_scopes, v_hash, session_user
    FROM pg_proc f JOIN pg_namespace n ON n.oid = f.pronamespace WHERE f.oid = v_oid
      ON CONFLICT (one) DO UPDATE SET (function_oid, function_schema, function_name, max_scopes, definition_hash, actor)
       = ROW (excluded.function_oid, excluded.function_schema, excluded.function_name, excluded.max_scopes, excluded.definition_hash, excluded.actor);
END
$fn$;
