CREATE FUNCTION synchro._complete_rules(p_generation bigint) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Checks the functions of every synced table whose membership rule or dependencies the generation changes, and makes twins of the new ones.
-- A function without a twin is new. Errors: those of _complete_function and _check_images.
DECLARE
  v_base   bigint := (SELECT g.base FROM synchro.registry_generation g WHERE g.generation = p_generation);
  v_target synchro.registration;
  v_dep    synchro.membership_dependency;
BEGIN
  FOR v_target IN
    SELECT r.* FROM synchro.registration r
     WHERE r.generation = p_generation AND r.kind = 'synced'
       AND (r.membership_twin IS NULL OR EXISTS (
             SELECT FROM (SELECT * FROM synchro.membership_dependency WHERE generation = p_generation AND target_rel_no = r.rel_no) d
               FULL JOIN (SELECT * FROM synchro.membership_dependency WHERE generation = v_base AND target_rel_no = r.rel_no) o
                      ON (o.source_rel_no, o.impact_function, o.impact_twin, o.source_attnums)
                       = (d.source_rel_no, d.impact_function, d.impact_twin, d.source_attnums)
              WHERE o.source_rel_no IS NULL OR d.source_rel_no IS NULL))
     ORDER BY r.rel_no
  LOOP
    UPDATE synchro.registration SET membership_twin = coalesce(membership_twin, f.twin)
      FROM synchro._complete_function(v_target.membership_function, 'membership', v_target.membership_hash,
             CASE WHEN v_target.membership_twin IS NULL THEN format('m_%s_%s', v_target.rel_no, p_generation) END::name, v_target) f(twin)
     WHERE generation = p_generation AND rel_no = v_target.rel_no;
    FOR v_dep IN SELECT d.* FROM synchro.membership_dependency d
                  WHERE d.generation = p_generation AND d.target_rel_no = v_target.rel_no ORDER BY d.source_rel_no LOOP
      PERFORM synchro._check_images(v_dep);
      UPDATE synchro.membership_dependency SET impact_twin = coalesce(impact_twin, f.twin)
        FROM synchro._complete_function(v_dep.impact_function, 'impact', v_dep.impact_hash,
               CASE WHEN v_dep.impact_twin IS NULL THEN format('i_%s_%s_%s', v_target.rel_no, v_dep.source_rel_no, p_generation) END::name,
               v_target) f(twin)
       WHERE generation = p_generation AND target_rel_no = v_dep.target_rel_no AND source_rel_no = v_dep.source_rel_no;
    END LOOP;
  END LOOP;
  UPDATE synchro.registration SET twin_hash = synchro._definition_hash(membership_twin)
   WHERE generation = p_generation AND membership_twin IS NOT NULL AND twin_hash IS NULL;
  UPDATE synchro.membership_dependency SET twin_hash = synchro._definition_hash(impact_twin)
   WHERE generation = p_generation AND impact_twin IS NOT NULL AND twin_hash IS NULL;
END
$fn$;
