CREATE FUNCTION synchro._changed_rules(p_old bigint, p_new bigint) RETURNS SETOF int LANGUAGE sql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- The relations that both generations sync, under other rules: another function, composition or bound, or other dependencies.
SELECT n.rel_no
  FROM synchro.registration n
  JOIN synchro.registration o ON o.generation = p_old AND o.rel_no = n.rel_no AND o.kind = 'synced'
 WHERE n.generation = p_new AND n.kind = 'synced'
   AND ((n.membership_function, n.membership_hash, n.composition, n.max_scope_fanout)
          IS DISTINCT FROM (o.membership_function, o.membership_hash, o.composition, o.max_scope_fanout)
     OR (SELECT jsonb_agg(jsonb_build_array(d.source_rel_no, d.impact_function, d.impact_hash, d.source_attnums, d.max_impact_rows) ORDER BY d.source_rel_no)
           FROM synchro.membership_dependency d WHERE d.generation = p_new AND d.target_rel_no = n.rel_no)
          IS DISTINCT FROM
        (SELECT jsonb_agg(jsonb_build_array(d.source_rel_no, d.impact_function, d.impact_hash, d.source_attnums, d.max_impact_rows) ORDER BY d.source_rel_no)
           FROM synchro.membership_dependency d WHERE d.generation = p_old AND d.target_rel_no = n.rel_no))
$fn$;
