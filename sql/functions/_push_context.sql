CREATE FUNCTION synchro._push_context(p_client_no bigint, p_user_id text, p_claims jsonb) RETURNS void LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'synchro_push_context';
COMMENT ON FUNCTION synchro._push_context(bigint, text, jsonb) IS
  'Begins the push context of this (sub)transaction; p_client_no NULL ends it. Fences then also write push_fence rows.';
