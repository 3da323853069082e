CREATE FUNCTION synchro._reject_generation(p_generation bigint, p_reason text, p_rel_no int) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- For the worker: a pending generation will never be active, and neither will one that was built on what goes with it. What was in force stays.
-- p_reason: scope_evaluation_failed, affected_scopes_incomplete, materialization_failed, base_rejected or withdrawn (by an operator). p_rel_no: NULL when it is of no relation.
DECLARE
  v_next bigint;
BEGIN
  INSERT INTO synchro.backfill AS b (generation, state, reason, rel_no) VALUES (p_generation, 'rejected', p_reason, p_rel_no)
      ON CONFLICT (generation) DO UPDATE SET state = 'rejected', reason = p_reason, rel_no = p_rel_no;
  RAISE WARNING USING ERRCODE = 'SY202', MESSAGE = format('registry generation %s was rejected: %s', p_generation, p_reason),
    HINT = 'the rules before it stay in force; synchro_health_detail() names the table';
  -- The rows of its new relations are not kept up to date from here on.
  FOR v_next IN SELECT b.generation FROM synchro.backfill b WHERE b.state <> 'rejected' AND synchro._built_on_rejected(b.generation) ORDER BY 1
  LOOP
    PERFORM synchro._reject_generation(v_next, 'base_rejected', NULL);
  END LOOP;
END
$fn$;
