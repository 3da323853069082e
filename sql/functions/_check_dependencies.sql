CREATE FUNCTION synchro._check_dependencies(p_generation bigint) RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Every dependency of the generation joins a synced target with a registered source that captures the declared columns.
-- Errors: invalid_configuration, undeclared_dependency.
DECLARE
  v_dep record;
BEGIN
  FOR v_dep IN
    SELECT t.kind AS target_kind, s.kind AS source_kind, lt.relation_id AS target_id, ls.relation_id AS source_id,
           format('%I.%I', lt.physical_schema, lt.physical_relation) AS target, format('%I.%I', ls.physical_schema, ls.physical_relation) AS source,
           c.column_name AS uncaptured
      FROM synchro.membership_dependency d
      JOIN synchro.relation lt ON lt.rel_no = d.target_rel_no
      JOIN synchro.relation ls ON ls.rel_no = d.source_rel_no
      LEFT JOIN synchro.registration t ON t.generation = d.generation AND t.rel_no = d.target_rel_no
      LEFT JOIN synchro.registration s ON s.generation = d.generation AND s.rel_no = d.source_rel_no
      LEFT JOIN LATERAL (
        SELECT coalesce(a.attname, 'a dropped one') AS column_name FROM unnest(d.source_attnums) n
          LEFT JOIN synchro.captured_column k ON k.rel_no = d.source_rel_no AND k.attnum = n
           AND k.column_name = ANY (synchro._needed_columns(s, ls.view_columns))
          LEFT JOIN pg_attribute a ON a.attrelid = ls.relation_oid AND a.attnum = n AND NOT a.attisdropped
         WHERE k.attnum IS NULL ORDER BY n LIMIT 1) c ON true
     WHERE d.generation = p_generation ORDER BY d.target_rel_no, d.source_rel_no
  LOOP
    IF v_dep.target_kind IS DISTINCT FROM 'synced' THEN
      PERFORM synchro._refuse('invalid_configuration', format('%s has a membership dependency and is not synced', v_dep.target),
        'register it with synchro_register_table in the same transaction, or unregister the dependency', v_dep.target_id);
    ELSIF v_dep.source_kind IS NULL THEN
      PERFORM synchro._refuse('undeclared_dependency', format('%s depends on %s, which is not registered', v_dep.target, v_dep.source),
        'register it with synchro_register_capture_dependency or synchro_register_table in the same transaction, or unregister the dependency',
        v_dep.source_id);
    ELSIF v_dep.uncaptured IS NOT NULL THEN
      PERFORM synchro._refuse('undeclared_dependency',
        format('%s depends on column %I of %s, which is not captured', v_dep.target, v_dep.uncaptured, v_dep.source),
        CASE v_dep.source_kind WHEN 'synced' THEN 'sync the column, or name it in the table''s projection view'
                               ELSE 'name it in p_captured_columns of the capture dependency' END, v_dep.source_id);
    END IF;
  END LOOP;
END
$fn$;
