CREATE FUNCTION synchro._tidy(p_stale_before timestamptz, p_batch_size int) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Removes what serves nobody any more, about p_batch_size rows of each kind a call; returns how many rows went, so that 0 means that
-- nothing is left. Locks: rows; those that somebody holds are passed over.
--   rebuilds: sessions after their 24 hours, stages that no session uses or that are of a generation gone by
--   configurations: registrations, dependencies and copies of functions that no generation in use or to come has
--   digests: those of earlier manifests, and of scopes that no client is assigned any more
--   tombstones: of rows deleted before p_stale_before. Whoever has not acknowledged anything since then is expired and rebuilds; whoever
--     has, has seen the row go. From then on the identity counts as absent.
--   checkpoints: of retired clients; of scopes that expired ones had lost before, since they cannot present a cursor of them any more
DECLARE
  v_rows  bigint := synchro._drop_expired_rebuilds(p_batch_size) + synchro._retire_configurations(p_batch_size);
  v_count bigint;
BEGIN
  DELETE FROM synchro.scope_digest_cache k
   USING (SELECT d.scope_no, d.schema_version FROM synchro.scope_digest_cache d
           WHERE d.schema_version < (SELECT p.schema_version FROM synchro.progress p)
              OR NOT EXISTS (SELECT FROM synchro.scope s JOIN synchro.client_scope a ON a.scope_id = s.scope_id AND a.assigned
                              WHERE s.scope_no = d.scope_no)
           LIMIT p_batch_size FOR UPDATE SKIP LOCKED) o
   WHERE k.scope_no = o.scope_no AND k.schema_version = o.schema_version;
  GET DIAGNOSTICS v_count = ROW_COUNT;
  v_rows := v_rows + v_count;
  DELETE FROM synchro.tombstone t
   USING (SELECT d.rel_no, d.key FROM synchro.tombstone d WHERE d.deleted_at < p_stale_before LIMIT p_batch_size FOR UPDATE SKIP LOCKED) o
   WHERE t.rel_no = o.rel_no AND t.key = o.key AND t.deleted_at < p_stale_before;
  GET DIAGNOSTICS v_count = ROW_COUNT;
  v_rows := v_rows + v_count;
  DELETE FROM synchro.client_scope a
   USING (SELECT x.client_no, x.scope_id FROM synchro.client_scope x JOIN synchro.client c ON c.client_no = x.client_no
           WHERE (NOT x.assigned AND c.expired) OR c.retired_at IS NOT NULL LIMIT p_batch_size FOR UPDATE OF x SKIP LOCKED) o
   WHERE a.client_no = o.client_no AND a.scope_id = o.scope_id;
  GET DIAGNOSTICS v_count = ROW_COUNT;
  RETURN v_rows + v_count;
END
$fn$;
