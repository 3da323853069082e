CREATE FUNCTION synchro._health_checks() RETURNS TABLE ("check" text, state text, reason text, value bigint)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Every readiness check (docs/operations.md): state ok, failed or unknown; reason is a bounded code; value a number where one helps.
DECLARE
  v_progress  synchro.progress;
  v_worker    record;
  v_slot      record;
  v_heartbeat int := nullif(current_setting('synchro.max_worker_heartbeat_age_seconds', true), '')::int;
  v_bytes     bigint := nullif(pg_size_bytes(nullif(current_setting('synchro.max_wal_lag_bytes', true), '')), 0);
  v_seconds   int := nullif(current_setting('synchro.max_wal_lag_seconds', true), '')::int;
  v_lag       bigint;
  v_sync      text;
  v_class     text := (SELECT q.class FROM synchro.quarantine q WHERE q.resolved_at IS NULL);
BEGIN
  SELECT p.* INTO v_progress FROM synchro.progress p;
  SELECT w.* INTO v_worker FROM synchro._worker_status() w LIMIT 1;
  SELECT s.* INTO v_slot FROM pg_replication_slots s WHERE s.slot_name = v_progress.slot_name;
  RETURN QUERY
  WITH d AS MATERIALIZED (SELECT * FROM synchro._drift()),
  c("check", failed, why, val) AS (VALUES
    ('limits', coalesce(v_heartbeat, 0) <= 0 OR coalesce(v_bytes, 0) <= 0 OR coalesce(v_seconds, 0) <= 0, 'limit_not_positive', NULL::bigint),
    ('recovery', pg_is_in_recovery(), 'in_recovery', NULL),
    ('stream_identity', (SELECT (v_progress.system_identifier, v_progress.timeline, v_progress.database_oid)
                                <> (i.system_identifier, i.timeline, i.database_oid) FROM synchro._stream_identity() i),
      CASE v_progress.database_oid WHEN 0 THEN 'restored' ELSE 'identity_changed' END, NULL),
    ('worker', (v_worker.pid IS NULL), 'not_running', v_worker.restarts),
    ('heartbeat', extract(epoch FROM clock_timestamp() - v_progress.heartbeat_at) > v_heartbeat, 'stale',
      extract(epoch FROM clock_timestamp() - v_progress.heartbeat_at)::bigint),
    ('worker_login', (SELECT count(DISTINCT m.member) FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.member
                       WHERE m.roleid = 'synchro_worker'::regrole AND r.rolcanlogin
                         AND NOT EXISTS (SELECT FROM pg_database d WHERE r.rolname = 'synchro_worker_' || d.oid AND d.datname <> current_database()))
                     <> 1, 'not_exactly_one', NULL),
    ('slot', v_slot.slot_name IS NULL, 'missing', NULL),
    ('slot_usable', v_slot.plugin <> 'pgoutput' OR v_slot.database <> current_database() OR v_slot.wal_status = 'lost', 'unusable', NULL),
    ('slot_active', NOT v_slot.active, 'not_streaming', NULL),
    ('capture', v_class IS NOT NULL, v_class, NULL),
    -- One that has arrived and is being staged takes its time, and what was in force stays so.
    ('registry', EXISTS (SELECT FROM synchro.registry_generation g WHERE g.generation > v_progress.registry_generation
                            AND NOT EXISTS (SELECT FROM synchro.backfill b WHERE b.generation = g.generation)), 'generation_pending',
      (SELECT max(g.generation) FROM synchro.registry_generation g)),
    ('relations', EXISTS (SELECT FROM d WHERE d."check" = 'relations'), (SELECT min(d.reason) FROM d WHERE d."check" = 'relations'), NULL),
    ('key', EXISTS (SELECT FROM d WHERE d."check" = 'key'), 'changed', NULL),
    ('columns', EXISTS (SELECT FROM d WHERE d."check" = 'columns'), 'changed', NULL),
    ('triggers', EXISTS (SELECT FROM d WHERE d."check" = 'triggers'), 'missing_or_disabled', NULL),
    ('privileges', EXISTS (SELECT FROM d WHERE d."check" = 'privileges'), 'missing', NULL),
    -- A definition that was registered anew for a later rule is known: the copy stands in for the one before it (extension/rule.c).
    ('functions', EXISTS (SELECT FROM synchro.active_registration a CROSS JOIN LATERAL synchro._definition_hash(a.membership_function) h(now)
                           WHERE h.now IS DISTINCT FROM a.membership_hash AND a.kind = 'synced'
                             AND NOT EXISTS (SELECT FROM synchro.registration n WHERE n.rel_no = a.rel_no
                                                AND (n.generation > a.generation OR n.generation IN (SELECT b.generation FROM synchro.backfill b WHERE b.state = 'rejected'))
                                                AND (n.membership_function, n.membership_hash) = (a.membership_function, h.now)))
               OR EXISTS (SELECT FROM synchro.membership_dependency m CROSS JOIN LATERAL synchro._definition_hash(m.impact_function) h(now)
                           WHERE m.generation = v_progress.registry_generation AND h.now IS DISTINCT FROM m.impact_hash
                             AND NOT EXISTS (SELECT FROM synchro.membership_dependency n
                                              WHERE (n.generation > m.generation OR n.generation IN (SELECT b.generation FROM synchro.backfill b WHERE b.state = 'rejected'))
                                                AND (n.target_rel_no, n.source_rel_no) = (m.target_rel_no, m.source_rel_no)
                                                AND (n.impact_function, n.impact_hash) = (m.impact_function, h.now))), 'missing_or_changed', NULL),
    ('publication', EXISTS (SELECT FROM d WHERE d."check" = 'publication'), 'missing_or_changed', NULL),
    ('publication_relations', EXISTS (
        SELECT FROM (SELECT r.prrelid FROM pg_publication_rel r JOIN pg_publication b ON b.oid = r.prpubid
                      WHERE b.pubname = current_setting('synchro.publication_name', true)) r
               FULL JOIN (SELECT l.relation_oid FROM synchro.registration g JOIN synchro.relation l ON l.rel_no = g.rel_no
                           WHERE g.generation = synchro._newest_generation()) a
                 ON a.relation_oid = r.prrelid
         WHERE r.prrelid IS NULL
            OR (a.relation_oid IS NULL     -- one that leaves stays published until the worker has swept it
                AND NOT EXISTS (SELECT FROM synchro.standing_registration s WHERE s.relation_oid = r.prrelid)
                AND NOT EXISTS (SELECT FROM pg_trigger t JOIN pg_proc y ON y.oid = t.tgfoid
                                 WHERE t.tgrelid = r.prrelid AND y.proname = 'synchro_fence' AND y.pronamespace = 'synchro'::regnamespace)))
      OR EXISTS (SELECT FROM d WHERE d."check" = 'publication_relations'), 'not_exactly_the_registered', NULL),
    ('assignment', EXISTS (SELECT FROM synchro.assignment_function f
                            WHERE synchro._definition_hash(f.function_oid) IS DISTINCT FROM f.definition_hash), 'missing_or_changed', NULL)
  )
  SELECT c."check", CASE WHEN c.failed THEN 'failed' WHEN c.failed IS NULL THEN 'unknown' ELSE 'ok' END,
         CASE WHEN c.failed IS NOT FALSE THEN c.why END, c.val
    FROM c;
  v_lag := pg_wal_lsn_diff(pg_current_wal_flush_lsn(), v_progress.seen_lsn)::bigint;
  RETURN QUERY SELECT 'lag_bytes', CASE WHEN v_lag > v_bytes THEN 'failed' WHEN v_lag > v_bytes IS NULL THEN 'unknown' ELSE 'ok' END,
                      CASE WHEN (v_lag > v_bytes) IS NOT FALSE THEN 'behind' END, v_lag;
  -- replay_lag is NULL once the stream is caught up and idle.
  SELECT coalesce(extract(epoch FROM w.replay_lag), 0)::bigint, w.sync_state INTO v_lag, v_sync
    FROM pg_stat_get_wal_senders() w WHERE w.pid = v_slot.active_pid;
  RETURN QUERY SELECT 'lag_seconds', CASE WHEN v_lag > v_seconds THEN 'failed' WHEN v_lag > v_seconds IS NULL THEN 'unknown' ELSE 'ok' END,
                      CASE WHEN v_lag > v_seconds THEN 'behind' WHEN v_lag > v_seconds IS NULL THEN 'not_streaming' END, v_lag;
  RETURN QUERY SELECT 'asynchronous', CASE WHEN v_sync <> 'async' THEN 'failed' WHEN v_sync IS NULL THEN 'unknown' ELSE 'ok' END,
                      CASE WHEN v_sync <> 'async' THEN 'synchronous_standby' WHEN v_sync IS NULL THEN 'not_streaming' END, NULL::bigint;
END
$fn$;
