CREATE FUNCTION synchro._complete_function(p_function oid, p_kind text, p_hash text, p_twin name, p_target synchro.registration)
RETURNS oid LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Checks a function of a registration at its completion, and makes its twin if it is to have one (p_twin: its name, or NULL).
-- p_kind: membership or impact. p_hash: of the definition that was registered. p_target: whose rule the function is part of.
-- Returns the twin. Errors: invalid_scope_function, undeclared_dependency, missing_privilege.
DECLARE
  v_relation record;
  v_hash     text := synchro._definition_hash(p_function);
  v_broken   text;
BEGIN
  SELECT l.relation_id, c.relowner INTO v_relation
    FROM synchro.relation l LEFT JOIN pg_class c ON c.oid = l.relation_oid WHERE l.rel_no = p_target.rel_no;
  IF v_relation.relowner IS NULL THEN
    PERFORM synchro._refuse('unsupported_relation', 'a table of the registration does not exist any more', 'unregister it', v_relation.relation_id);
  END IF;
  v_broken := synchro._check_function(p_function, p_kind, v_relation.relowner, p_target.key_type);
  IF v_broken IS NOT NULL THEN
    PERFORM synchro._refuse('invalid_scope_function', format('%s function %s breaks a rule: %s', p_kind, p_function::regprocedure, v_broken),
                            'docs/registration.md lists the rules', v_relation.relation_id);
  ELSIF v_hash IS DISTINCT FROM p_hash OR v_hash IS DISTINCT FROM synchro._definition_hash(p_function) THEN
    PERFORM synchro._refuse('invalid_scope_function', format('the %s function changed while it was checked', p_kind),
                            'register it after its last change', v_relation.relation_id);
  END IF;
  PERFORM synchro._check_function_reads(p_function, p_kind, p_target, v_relation.relation_id);
  RETURN CASE WHEN p_twin IS NOT NULL THEN synchro._make_twin(p_function, p_twin) END;
END
$fn$;
