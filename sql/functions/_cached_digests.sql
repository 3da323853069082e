CREATE FUNCTION synchro._cached_digests(p_schema_version bigint, p_scope_nos bigint[], p_scope_ids text[], p_high_lsns pg_lsn[]) RETURNS text[]
LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'synchro_cached_digests';
COMMENT ON FUNCTION synchro._cached_digests(bigint, bigint[], text[], pg_lsn[]) IS
  'the same as _cached_digest of several scopes, which are in the order of their ids';
