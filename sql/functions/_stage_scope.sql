CREATE FUNCTION synchro._stage_scope(p_scope_id text, p_scope_no bigint, p_high_lsn pg_lsn, p_membership_generation bigint,
  p_retention_generation bigint, p_progress synchro.progress) RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp SET jit = off SET work_mem = '64MB' AS $fn$
-- Stages the live rows of a scope at the boundary of p_progress: rendered records in identity order, and the digest.
-- p_scope_no, p_high_lsn: NULL before the scope's first effect. Returns the stage's number.
-- Errors: SY011 when an entry has no projection row of its version.
DECLARE
  v_stage    bigint;
  v_digest   record;
  v_relation record;
  v_total    bigint := 0;
BEGIN
  IF p_scope_no IS NULL THEN
    SELECT d.digest, d.cardinality INTO v_digest FROM synchro._scope_digest(0, p_progress.schema_version, p_scope_id) d;
  ELSE
    SELECT d.digest, d.cardinality INTO v_digest
      FROM synchro._cached_digest(p_scope_no, p_progress.schema_version, p_scope_id, p_high_lsn) d;
  END IF;
  INSERT INTO synchro.rebuild_stage (scope_id, schema_version, stream_generation, membership_generation, retention_generation,
                                     boundary_lsn, cardinality, digest)
  VALUES (p_scope_id, p_progress.schema_version, p_progress.stream_generation, p_membership_generation, p_retention_generation,
          p_progress.commit_lsn, v_digest.cardinality, v_digest.digest)
  RETURNING stage_no INTO v_stage;

  -- Identities sort by table id first.
  FOR v_relation IN SELECT k.* FROM synchro.synced_relation k WHERE k.schema_version = p_progress.schema_version ORDER BY k.table_id LOOP
    v_total := v_total + coalesce(synchro._stage_rows(v_stage, v_total, p_scope_no, v_relation.rel_no, p_progress.schema_version), 0);
  END LOOP;
  IF v_total <> v_digest.cardinality THEN
    PERFORM synchro._raise('sync_integrity_failure');
  END IF;
  RETURN v_stage;
END
$fn$;
