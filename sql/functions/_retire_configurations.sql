CREATE FUNCTION synchro._retire_configurations(p_batch_size int) RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Removes what is stored of generations that nothing goes back to: those before the active one, and rejected ones. What the stream, clients
-- and their ledgers have of them are numbers and manifests, which stay. At most p_batch_size rows of each kind a call; returns how many went.
-- Kept: the last rejected definition of a function that is the present one, while a rule at work was registered with another. By it the
-- function is known, so that the rule's copy may stand in (extension/rule.c). A rejected generation is listed until a later one is active.
-- Locks: against registrations; one that is under way is not waited for.
DECLARE
  v_active bigint := (SELECT p.registry_generation FROM synchro.progress p);
  v_past   bigint[];
  v_count  bigint;
  v_rows   bigint := 0;
  v_twins  text;
BEGIN
  BEGIN
    LOCK TABLE synchro.registry_generation IN ROW EXCLUSIVE MODE NOWAIT;
  EXCEPTION WHEN lock_not_available THEN
    RETURN 0;
  END;
  v_past := ARRAY(SELECT g.generation FROM synchro.registry_generation g LEFT JOIN synchro.backfill b ON b.generation = g.generation
                   WHERE g.generation < v_active OR b.state = 'rejected');
  DELETE FROM synchro.declared_scope d
   USING (SELECT x.generation, x.rel_no, x.scope_id FROM synchro.declared_scope x
           WHERE x.generation = ANY (v_past || v_active) ORDER BY x.generation, x.rel_no, x.scope_id LIMIT p_batch_size) o
   WHERE (d.generation, d.rel_no, d.scope_id) = (o.generation, o.rel_no, o.scope_id);
  GET DIAGNOSTICS v_count = ROW_COUNT;
  v_rows := v_rows + v_count;
  DELETE FROM synchro.membership_dependency d
   USING (SELECT x.generation, x.target_rel_no, x.source_rel_no FROM synchro.membership_dependency x
           WHERE x.generation = ANY (v_past)
             AND NOT CASE WHEN EXISTS (SELECT FROM synchro.backfill b WHERE b.generation = x.generation)
                           AND NOT EXISTS (SELECT FROM synchro.membership_dependency l JOIN synchro.backfill b ON b.generation = l.generation
                                            WHERE l.generation > x.generation AND b.state = 'rejected'
                                              AND (l.target_rel_no, l.source_rel_no, l.impact_function, l.impact_hash)
                                                = (x.target_rel_no, x.source_rel_no, x.impact_function, x.impact_hash))
                           AND EXISTS (SELECT FROM synchro.membership_dependency s
                                        WHERE s.generation >= v_active AND s.generation <> ALL (v_past) AND s.impact_hash <> x.impact_hash
                                          AND (s.target_rel_no, s.source_rel_no, s.impact_function) = (x.target_rel_no, x.source_rel_no, x.impact_function))
                          THEN synchro._definition_hash(x.impact_function) IS NOT DISTINCT FROM x.impact_hash ELSE false END
           ORDER BY x.generation, x.target_rel_no, x.source_rel_no LIMIT p_batch_size) o
   WHERE (d.generation, d.target_rel_no, d.source_rel_no) = (o.generation, o.target_rel_no, o.source_rel_no);
  GET DIAGNOSTICS v_count = ROW_COUNT;
  v_rows := v_rows + v_count;
  DELETE FROM synchro.registration r
   USING (SELECT x.generation, x.rel_no FROM synchro.registration x
           WHERE x.generation = ANY (v_past)
             AND NOT CASE WHEN EXISTS (SELECT FROM synchro.backfill b WHERE b.generation = x.generation)
                           AND NOT EXISTS (SELECT FROM synchro.registration l JOIN synchro.backfill b ON b.generation = l.generation
                                            WHERE l.generation > x.generation AND b.state = 'rejected'
                                              AND (l.rel_no, l.membership_function, l.membership_hash) = (x.rel_no, x.membership_function, x.membership_hash))
                           AND EXISTS (SELECT FROM synchro.standing_registration s
                                        WHERE (s.rel_no, s.membership_function) = (x.rel_no, x.membership_function) AND s.membership_hash <> x.membership_hash)
                          THEN synchro._definition_hash(x.membership_function) IS NOT DISTINCT FROM x.membership_hash ELSE false END
           ORDER BY x.generation, x.rel_no LIMIT p_batch_size) o
   WHERE (r.generation, r.rel_no) = (o.generation, o.rel_no);
  GET DIAGNOSTICS v_count = ROW_COUNT;
  v_rows := v_rows + v_count;
  -- A generation that is built on a rejected one is rejected when it comes.
  DELETE FROM synchro.backfill b
   WHERE b.state = 'rejected' AND b.generation < v_active
     AND NOT EXISTS (SELECT FROM synchro.registration r WHERE r.generation = b.generation)
     AND NOT EXISTS (SELECT FROM synchro.membership_dependency d WHERE d.generation = b.generation)
     AND NOT EXISTS (SELECT FROM synchro.standing_registration s WHERE s.since = b.generation);
  DELETE FROM synchro.registry_generation g
   USING (SELECT x.generation FROM synchro.registry_generation x
           WHERE x.generation < v_active
             AND NOT EXISTS (SELECT FROM synchro.declared_scope c WHERE c.generation = x.generation)
             AND NOT EXISTS (SELECT FROM synchro.registration r WHERE r.generation = x.generation)
             AND NOT EXISTS (SELECT FROM synchro.membership_dependency d WHERE d.generation = x.generation)
             AND NOT EXISTS (SELECT FROM synchro.backfill b WHERE b.generation = x.generation)
           ORDER BY x.generation LIMIT p_batch_size) o
   WHERE g.generation = o.generation;
  GET DIAGNOSTICS v_count = ROW_COUNT;
  v_rows := v_rows + v_count;
  -- Copies of functions that no rule has any more. One that something of its owner uses stays until that is gone.
  SELECT string_agg(c.oid::regprocedure::text, ', '), count(*) INTO v_twins, v_count
    FROM (SELECT p.oid FROM pg_proc p
           WHERE p.pronamespace = 'synchro_twin'::regnamespace
             AND NOT EXISTS (SELECT FROM synchro.registration r WHERE r.membership_twin = p.oid)
             AND NOT EXISTS (SELECT FROM synchro.membership_dependency d WHERE d.impact_twin = p.oid)
             AND NOT EXISTS (SELECT FROM pg_depend u WHERE u.refclassid = 'pg_proc'::regclass AND u.refobjid = p.oid)
           ORDER BY p.oid LIMIT least(p_batch_size, 100)) c;
  IF v_count > 0 THEN
    EXECUTE 'DROP FUNCTION ' || v_twins;
  END IF;
  RETURN v_rows + v_count;
END
$fn$;
