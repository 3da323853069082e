CREATE FUNCTION synchro._check_function_reads(p_function oid, p_kind text, p_target synchro.registration, p_relation_id uuid)
RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- A function reads declared columns of declared dependencies, their keys, and of its target any row if it is an impact function, else the row
-- of its key. p_kind: membership or impact. Errors: undeclared_dependency, missing_privilege.
DECLARE
  v_owner oid := (SELECT f.proowner FROM pg_proc f WHERE f.oid = p_function);
  v_read  record;
BEGIN
  FOR v_read IN
    SELECT l.rel_no, l.relation_oid, r.relation::regclass AS view, d.source_rel_no IS NOT NULL AS declared,
           (SELECT array_agg(c.column_name ORDER BY c.attnum) FROM synchro.captured_column c JOIN pg_attribute a ON a.attname = c.column_name
             WHERE c.rel_no = l.rel_no AND a.attrelid = r.relation AND a.attnum = ANY (r.attnums || CASE WHEN 0 = ANY (r.attnums) THEN a.attnum END)
               AND c.attnum <> ALL (d.source_attnums || s.key_attnum)) AS undeclared
      FROM (SELECT f.relation, array_agg(DISTINCT f.attnum) FILTER (WHERE f.attnum IS NOT NULL) AS attnums
              FROM synchro._function_reads(p_function, (SELECT format('synchro_projection.%I', t.view_name)::regclass FROM synchro.relation t
                                                         WHERE t.rel_no = p_target.rel_no AND t.view_name IS NOT NULL),
                     (SELECT array_position(t.view_columns, p_target.key_column)::smallint FROM synchro.relation t WHERE t.rel_no = p_target.rel_no)) f
             WHERE NOT f.pinned GROUP BY f.relation) r
      JOIN pg_class v ON v.oid = r.relation
      JOIN synchro.relation l ON l.view_name = v.relname
      LEFT JOIN synchro.membership_dependency d ON d.generation = p_target.generation AND d.target_rel_no = p_target.rel_no AND d.source_rel_no = l.rel_no
      LEFT JOIN synchro.registration s ON s.generation = d.generation AND s.rel_no = d.source_rel_no
     ORDER BY l.rel_no
  LOOP
    CONTINUE WHEN p_kind = 'impact' AND v_read.rel_no = p_target.rel_no;
    IF NOT v_read.declared AND v_read.rel_no = p_target.rel_no THEN
      PERFORM synchro._refuse('undeclared_dependency', format('%s function %s reads other rows of its table than the one it is called for',
                                                              p_kind, p_function::regprocedure),
        format('add WHERE ... %I = p_row_key next to each FROM %s, or declare with synchro_register_membership_dependency that rows depend on their siblings',
               p_target.key_column, v_read.view), p_relation_id);
    ELSIF NOT v_read.declared THEN
      PERFORM synchro._refuse('undeclared_dependency', format('%s function %s reads %s, which is not declared', p_kind, p_function::regprocedure, v_read.view),
        'declare it with synchro_register_membership_dependency', p_relation_id);
    ELSIF v_read.undeclared IS NOT NULL THEN
      PERFORM synchro._refuse('undeclared_dependency', format('%s function %s reads column %I of %s, which is not declared',
                                                              p_kind, p_function::regprocedure, v_read.undeclared[1], v_read.view),
        'name it in p_dependency_columns of synchro_register_membership_dependency', p_relation_id);
    END IF;
  END LOOP;

  SELECT l.relation_oid INTO v_read FROM synchro._function_reads(p_function, NULL, NULL) f JOIN pg_class v ON v.oid = f.relation
    JOIN synchro.relation l ON l.view_name = v.relname
   WHERE NOT has_table_privilege(v_owner, l.relation_oid, 'SELECT') LIMIT 1;
  IF FOUND THEN
    PERFORM synchro._refuse('missing_privilege', 'the function''s owner cannot read the source relation',
                            format('GRANT SELECT ON %s TO %s', v_read.relation_oid::regclass, v_owner::regrole), p_relation_id);
  END IF;
END
$fn$;
