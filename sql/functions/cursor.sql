-- Incremental cursors (extension/cursor.c). A position is (lsn, event, effect); generation_start has event -1, transaction_end
-- the highest event and effect. C resolves no names, so no search_path.

CREATE FUNCTION synchro._cursor_sign(p_lsn pg_lsn, p_event bigint, p_effect int, p_stream_generation bigint, p_user_id text,
  p_client_id text, p_client_generation bigint, p_scope_id text, p_schema_hash text, p_membership_generation bigint,
  p_retention_generation bigint, p_issued bigint, p_key_id text DEFAULT NULL)
RETURNS text LANGUAGE c STABLE AS 'MODULE_PATHNAME', 'synchro_cursor_sign';
COMMENT ON FUNCTION synchro._cursor_sign(pg_lsn, bigint, int, bigint, text, text, bigint, text, text, bigint, bigint, bigint, text) IS
  'a cursor signed by the active key, or by p_key_id; p_issued in microseconds since 1970';

CREATE FUNCTION synchro._cursor_open(p_token text, OUT lsn pg_lsn, OUT event bigint, OUT effect int,
  OUT stream_generation bigint, OUT user_id text, OUT client_id text, OUT client_generation bigint, OUT scope_id text,
  OUT schema_hash text, OUT membership_generation bigint, OUT retention_generation bigint, OUT issued bigint)
LANGUAGE c STABLE STRICT AS 'MODULE_PATHNAME', 'synchro_cursor_open';
COMMENT ON FUNCTION synchro._cursor_open(text) IS
  'fields of a cursor; all NULL when malformed, not canonical, forged or signed by a retired key';

CREATE FUNCTION synchro._presented_cursors(p_scopes json)
RETURNS TABLE (presented_scope text, presented boolean, lsn pg_lsn, event bigint, effect int, stream_generation bigint, user_id text,
  client_id text, client_generation bigint, scope_id text, schema_hash text, membership_generation bigint,
  retention_generation bigint, issued bigint)
LANGUAGE c STABLE STRICT ROWS 10 AS 'MODULE_PATHNAME', 'synchro_presented_cursors';
COMMENT ON FUNCTION synchro._presented_cursors(json) IS
  'scope id -> {"cursor"} of a checked request: scope, whether there is a cursor, its fields as _cursor_open gives them';
