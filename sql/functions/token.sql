-- Signed tokens (extension/token.c). Purposes: cursor, rebuild, seed_page, seed_receipt. C resolves no names, so no search_path.

CREATE FUNCTION synchro._token_sign(p_purpose text, p_payload jsonb, p_key_id text DEFAULT NULL)
RETURNS text LANGUAGE c STABLE
AS 'MODULE_PATHNAME', 'synchro_token_sign';
COMMENT ON FUNCTION synchro._token_sign(text, jsonb, text) IS
  'prefix.payload.mac over a flat object, signed by the active key or by p_key_id; NULL when that key is retired';

CREATE FUNCTION synchro._token_open(p_purpose text, p_token text)
RETURNS jsonb LANGUAGE c STABLE STRICT
AS 'MODULE_PATHNAME', 'synchro_token_open';
COMMENT ON FUNCTION synchro._token_open(text, text) IS
  'payload of a token; NULL when malformed, not canonical, forged or signed by a retired key';

CREATE FUNCTION synchro._token_key(p_purpose text)
RETURNS text LANGUAGE c STABLE STRICT
AS 'MODULE_PATHNAME', 'synchro_token_key';
COMMENT ON FUNCTION synchro._token_key(text) IS 'id of the key that signs tokens of this purpose now';
