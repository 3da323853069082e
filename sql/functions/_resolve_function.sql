CREATE FUNCTION synchro._resolve_function(p_name text, p_arguments oid[]) RETURNS oid LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- OID of the function with this schema-qualified name and exactly these argument types. Errors: invalid_scope_function.
DECLARE
  v_parts text[] := synchro._qualified_name(p_name);
  v_oid   oid;
BEGIN
  IF v_parts IS NULL THEN
    PERFORM synchro._refuse('invalid_scope_function', 'the function name is not schema-qualified',
                            'write schema.function without arguments');
  END IF;
  SELECT f.oid INTO v_oid FROM pg_proc f JOIN pg_namespace n ON n.oid = f.pronamespace
   WHERE n.nspname = v_parts[1] AND f.proname = v_parts[2] AND string_to_array(f.proargtypes::text, ' ')::oid[] = p_arguments;
  IF v_oid IS NULL THEN
    PERFORM synchro._refuse('invalid_scope_function', 'no function of that name has the required argument types',
                            format('it must take (%s)', (SELECT string_agg(format_type(t, NULL), ', ') FROM unnest(p_arguments) t)));
  END IF;
  RETURN v_oid;
END
$fn$;
