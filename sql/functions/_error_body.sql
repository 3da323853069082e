CREATE FUNCTION synchro._error_body(p_sqlstate text, p_detail text)
RETURNS TABLE (status int, body text, wait_on bigint[]) LANGUAGE sql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- The row that an endpoint returns for an error of class SY that it caught.
-- p_sqlstate: RETURNED_SQLSTATE. p_detail: PG_EXCEPTION_DETAIL, members of the error object as JSON; other text is for SQL callers only.
-- An error of the class that has no place on the wire (a failed evaluation) is a sync_integrity_failure without members.
WITH e AS (
  SELECT c.name, c.http_status, c.retryable, c.sqlstate = p_sqlstate AS exact
  FROM synchro.errcode c
  WHERE c.http_status IS NOT NULL AND c.sqlstate IN (p_sqlstate, 'SY011')
  ORDER BY c.sqlstate = p_sqlstate DESC LIMIT 1
), m AS (
  SELECT j.key, j.value, j.ordinality
  FROM e, json_each(CASE WHEN e.exact AND p_detail LIKE '{%' THEN p_detail::json END) WITH ORDINALITY AS j (key, value, ordinality)
)
SELECT e.http_status,
       '{"error":{"code":"' || e.name || '","message":'
       || coalesce((SELECT m.value::text FROM m WHERE m.key = 'message'), to_json(replace(e.name, '_', ' '))::text)
       || ',"retryable":' || e.retryable
       || coalesce((SELECT string_agg(',' || to_json(m.key) || ':' || m.value, '' ORDER BY m.ordinality)
                      FROM m WHERE m.key <> 'message'), '')
       || '}}',
       NULL::bigint[]
FROM e
$fn$;
