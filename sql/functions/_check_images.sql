CREATE FUNCTION synchro._check_images(p_dependency synchro.membership_dependency) RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Of the row images an impact function reads declared columns and the key, by constant names: another member, a misspelt one for
-- instance, would be NULL for ever, and rows would stay where they are. Errors: undeclared_dependency.
DECLARE
  v_relation uuid := (SELECT l.relation_id FROM synchro.relation l WHERE l.rel_no = p_dependency.target_rel_no);
  v_unknown  record;
BEGIN
  SELECT m.name INTO v_unknown FROM synchro._image_members(p_dependency.impact_function) m(name)
   WHERE m.name IS NULL OR NOT EXISTS (
           SELECT FROM synchro.captured_column c JOIN synchro.registration s ON s.rel_no = c.rel_no AND s.generation = p_dependency.generation
            WHERE c.rel_no = p_dependency.source_rel_no AND c.attnum = ANY (p_dependency.source_attnums || s.key_attnum) AND c.column_name = m.name)
   ORDER BY m.name NULLS FIRST LIMIT 1;
  IF NOT FOUND THEN
    RETURN;
  ELSIF v_unknown.name IS NULL THEN
    PERFORM synchro._refuse('undeclared_dependency', format('impact function %s uses a row image in a way that does not tell which columns it reads',
                                                            p_dependency.impact_function::regprocedure),
      'read columns of p_old_row and p_new_row by constant names, as in p_old_row->>''name''', v_relation);
  END IF;
  PERFORM synchro._refuse('undeclared_dependency', format('impact function %s reads %I of a row image, which is not a declared column',
                                                          p_dependency.impact_function::regprocedure, v_unknown.name),
    'correct the name, or name the column in p_dependency_columns of synchro_register_membership_dependency', v_relation);
END
$fn$;
