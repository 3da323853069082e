CREATE FUNCTION synchro.synchro_health_detail() RETURNS jsonb LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Every check by name: {"state": ok|failed|unknown, "reason": code, "value": number}. For operators and monitors.
-- "staging" lists the generations that wait for their activation, and those rejected since the last one: it makes nothing unready, because
-- what was in force stays so.
SELECT jsonb_object_agg(h."check", jsonb_strip_nulls(jsonb_build_object('state', h.state, 'reason', h.reason, 'value', h.value)))
       || jsonb_build_object('staging', jsonb_build_object('state', 'ok', 'generations', (
            SELECT coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
                     'generation', b.generation, 'reason', b.reason, 'relation_id', l.relation_id, 'staged', b.staged,
                     'state', CASE WHEN b.state <> 'pending' THEN b.state
                                   WHEN b.generation = (SELECT min(f.generation) FROM synchro.backfill f WHERE f.state <> 'rejected') THEN 'staging'
                                   ELSE 'queued' END)) ORDER BY b.generation), '[]')
              FROM synchro.backfill b LEFT JOIN synchro.relation l ON l.rel_no = b.rel_no
             WHERE b.generation > (SELECT p.registry_generation FROM synchro.progress p))))
  FROM synchro._health_checks() h
$fn$;
