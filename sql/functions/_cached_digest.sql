CREATE FUNCTION synchro._cached_digest(p_scope_no bigint, p_schema_version bigint, p_scope_id text, p_high_lsn pg_lsn,
                                       OUT digest text, OUT cardinality bigint)
LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'synchro_cached_digest';
COMMENT ON FUNCTION synchro._cached_digest(bigint, bigint, text, pg_lsn) IS
  'digest of a scope whose high_lsn in the caller''s snapshot is p_high_lsn: stored, or computed and stored under a lock per scope';
