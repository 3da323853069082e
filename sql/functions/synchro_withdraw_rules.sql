CREATE FUNCTION synchro.synchro_withdraw_rules() RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- While capture is blocked nothing is staged, and a registration that reads rows anew, the way out, cannot wait behind changed rules: this rejects
-- all registrations that are pending, with the reason withdrawn. What was in force stays. Returns how many there were.
-- Errors: 55000 when capture is not blocked. Locks: the open block, so that no retry lets the worker go on meanwhile.
DECLARE
  v_generation bigint;
  v_rel        record;
  v_count      bigint := 0;
BEGIN
  PERFORM synchro._registration_lock();
  PERFORM FROM synchro.quarantine q WHERE q.resolved_at IS NULL
     AND NOT EXISTS (SELECT FROM synchro.capture_recovery c WHERE c.quarantine_no = q.quarantine_no) FOR UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = 'capture is not blocked',
      HINT = 'to take a changed rule back, register the table again with the one before';
  END IF;
  FOR v_generation IN
    SELECT g.generation FROM synchro.registry_generation g
     WHERE g.generation > (SELECT p.registry_generation FROM synchro.progress p) AND g.staged
       AND NOT EXISTS (SELECT FROM synchro.backfill b WHERE b.generation = g.generation AND b.state = 'rejected')
     ORDER BY g.generation
  LOOP
    PERFORM synchro._reject_generation(v_generation, 'withdrawn', NULL);
    v_count := v_count + 1;
  END LOOP;
  DELETE FROM synchro.staged_membership;
  FOR v_rel IN -- rows of their new relations
    SELECT DISTINCT r.rel_no FROM synchro.registration r
      JOIN synchro.backfill b ON b.generation = r.generation AND b.state = 'rejected' AND b.reason = 'withdrawn'
     WHERE NOT EXISTS (SELECT FROM synchro.standing_registration s WHERE s.rel_no = r.rel_no)
  LOOP
    EXECUTE format('DELETE FROM synchro_data.r_%s', v_rel.rel_no);
  END LOOP;
  RETURN v_count;
END
$fn$;
