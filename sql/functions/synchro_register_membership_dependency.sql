CREATE FUNCTION synchro.synchro_register_membership_dependency(p_dependency_table_name text, p_target_table_name text, p_impact_function text,
  p_dependency_columns text[], p_max_impact_rows int DEFAULT 1000) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Declares that the scopes of the target's rows depend on columns of another relation, or of sibling rows (dependency = target).
-- p_impact_function: schema.function, (old jsonb, new jsonb) -> SETOF synchro_row_ref: the target's rows that one changed row affects.
-- p_dependency_columns: what the target's functions read of the dependency; its key and the coming and going of its rows are included.
-- The calls of a transaction may come in any order: both relations and all functions are checked at commit. Repeating an unchanged
-- call changes nothing; a changed function, column list or bound takes effect with the new generation.
-- Errors: the reasons of docs/registration.md, each with its SQLSTATE.
DECLARE
  v_source  oid := synchro._resolve_relation(p_dependency_table_name);
  v_target  oid := synchro._resolve_relation(p_target_table_name);
  v_new     synchro.membership_dependency;
  v_old     synchro.membership_dependency;
BEGIN
  PERFORM synchro._registration_lock();
  IF p_max_impact_rows IS NULL OR p_max_impact_rows NOT BETWEEN 1 AND 1000 THEN
    PERFORM synchro._refuse('invalid_limit', 'p_max_impact_rows must be from 1 to 1000',
                            'a change that affects more rows needs a rule that it does not reach, such as a scope for each group');
  ELSIF (SELECT count(DISTINCT c.relowner) FROM pg_class c WHERE c.oid IN (v_source, v_target)) > 1 THEN
    PERFORM synchro._refuse('not_owner', 'the dependency and its target have different owners',
                            format('ALTER TABLE %s OWNER TO %s', v_source::regclass, (SELECT c.relowner::regrole FROM pg_class c WHERE c.oid = v_target)));
  END IF;
  PERFORM synchro._check_columns(v_source, p_dependency_columns);
  IF cardinality(p_dependency_columns) = 0 THEN
    PERFORM synchro._refuse('invalid_configuration', 'a dependency has at least one column',
                            'name in p_dependency_columns what the functions read; the key alone, if only the existence of rows matters');
  END IF;
  v_new.target_rel_no := synchro._capture_columns(v_target, '{}');
  v_new.source_rel_no := synchro._capture_columns(v_source, '{}');
  v_new.impact_function := synchro._resolve_function(p_impact_function, ARRAY['jsonb'::regtype, 'jsonb'::regtype]::oid[]);
  v_new.impact_hash := synchro._definition_hash(v_new.impact_function);
  v_new.max_impact_rows := p_max_impact_rows;
  SELECT array_agg(a.attnum ORDER BY a.attnum) INTO v_new.source_attnums FROM pg_attribute a
   WHERE a.attrelid = v_source AND a.attname = ANY (p_dependency_columns) AND a.attnum > 0 AND NOT a.attisdropped;

  SELECT d.* INTO v_old FROM synchro.membership_dependency d
   WHERE d.target_rel_no = v_new.target_rel_no AND d.source_rel_no = v_new.source_rel_no
     AND d.generation = synchro._newest_generation();
  v_new.generation := v_old.generation;
  v_new.dependency_id := coalesce(v_old.dependency_id, gen_random_uuid());
  IF v_old.impact_function = v_new.impact_function AND v_old.impact_hash = v_new.impact_hash THEN
    v_new.impact_twin := v_old.impact_twin;
    v_new.twin_hash := v_old.twin_hash;
  END IF;
  IF v_new IS NOT DISTINCT FROM v_old THEN
    RETURN;
  END IF;
  v_new.generation := synchro._open_generation();
  DELETE FROM synchro.membership_dependency d
   WHERE d.generation = v_new.generation AND d.target_rel_no = v_new.target_rel_no AND d.source_rel_no = v_new.source_rel_no;
  INSERT INTO synchro.membership_dependency SELECT v_new.*;
END
$fn$;
