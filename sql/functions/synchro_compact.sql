CREATE FUNCTION synchro.synchro_compact(p_stale_after interval DEFAULT NULL, p_batch_size int DEFAULT 10000) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- One batch of compaction (docs/operations.md, Retention), by the worker, after everything committed so far is materialized.
-- p_stale_after: clients that have acknowledged nothing for so long expire; NULL: synchro.stale_client_after. p_batch_size: entries
-- that it deletes at most, 1 to 10000. Returns {"expired_clients", "deleted_entries", "deleted_other"}; call again until
-- deleted_entries is 0. It is not part of the caller's transaction: a rollback does not undo it.
-- Errors: 22023 for a parameter out of its range, 25000 unless READ COMMITTED, 55000 when capture is blocked or does not run, or is not
-- there after 30 seconds: the caller's snapshot keeps vacuum from what the worker leaves behind, so waiting longer would slow it down.
DECLARE
  v_interval interval := coalesce(p_stale_after, current_setting('synchro.stale_client_after')::interval);
  v_seconds  numeric := extract(epoch FROM v_interval);
  v_before   timestamptz;
  v_since    timestamptz := clock_timestamp();
  v_end      timestamptz := v_since + interval '30 seconds';
  v_request  bigint;
  v_done     synchro.compaction;
BEGIN
  -- Months, days and seconds of different signs are no length of time.
  IF NOT isfinite(v_interval) OR v_seconds <= 0 OR v_seconds > 2147483647
     OR least(extract(year FROM v_interval), extract(month FROM v_interval), extract(day FROM v_interval), extract(hour FROM v_interval),
              extract(minute FROM v_interval), extract(second FROM v_interval)) < 0 THEN
    RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'p_stale_after is not a positive, finite length of time',
                          HINT = 'Give an interval of up to 68 years, or NULL for synchro.stale_client_after.';
  ELSIF coalesce(p_batch_size, 0) NOT BETWEEN 1 AND 10000 THEN
    RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'p_batch_size is out of range', HINT = 'Give a number from 1 to 10000.';
  ELSIF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION USING ERRCODE = '25000', MESSAGE = 'compaction can be asked for in READ COMMITTED only';
  END IF;
  v_before := v_since - v_interval;
  LOOP
    -- Not before somebody streams: a new slot knows nothing of earlier requests.
    IF synchro._require_capture(v_since) THEN
      v_since := clock_timestamp();
      v_request := coalesce(v_request, synchro._emit_compaction(v_before, p_batch_size));
      SELECT c.* INTO v_done FROM synchro.compaction c WHERE c.request = v_request;
      EXIT WHEN FOUND;
      IF v_since > v_end THEN
        RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = 'the worker has not come to the compaction within 30 seconds',
                              HINT = 'It compacts when it gets there; synchro.compaction shows it then.';
      END IF;
    END IF;
    PERFORM pg_sleep(0.01);
  END LOOP;
  IF v_done.failure IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = v_done.failure, MESSAGE = 'the worker could not compact', HINT = 'The server''s log has its failures.';
  END IF;
  RETURN jsonb_build_object('expired_clients', v_done.expired_clients, 'deleted_entries', v_done.deleted_entries,
                            'deleted_other', v_done.deleted_other);
END
$fn$;
