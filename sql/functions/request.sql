-- Shape of requests (extension/request*.c, semver.c). C resolves no names, so no search_path.

CREATE FUNCTION synchro._request(p_kind text, p_request text)
RETURNS json LANGUAGE c STABLE STRICT AS 'MODULE_PATHNAME', 'synchro_request';
COMMENT ON FUNCTION synchro._request(text, text) IS
  'the request of that kind (connect, push, pull, rebuild) if its versions and shape are good; else SY009, SY001 or SY002';

CREATE FUNCTION synchro._request_client(p_request text)
RETURNS text LANGUAGE c STABLE STRICT AS 'MODULE_PATHNAME', 'synchro_request_client';
COMMENT ON FUNCTION synchro._request_client(text) IS 'client id of a request whose shape is not checked yet, or NULL';

CREATE FUNCTION synchro._semver_compare(p_a text, p_b text)
RETURNS int LANGUAGE c IMMUTABLE STRICT AS 'MODULE_PATHNAME', 'synchro_semver_compare';
COMMENT ON FUNCTION synchro._semver_compare(text, text) IS
  'order of two versions as in SemVer 2.0.0: -1, 0 or 1; NULL when one is malformed';
