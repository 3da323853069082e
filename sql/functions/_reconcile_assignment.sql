CREATE FUNCTION synchro._reconcile_assignment(p_client synchro.client, OUT o_scopes text[], OUT o_scope_set_version bigint)
LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- The authoritative scopes of a client: the user's own unless revoked, shared ones, grants, and what the assignment function
-- returns. A changed set is written and advances scope_set_version by one; an unchanged set writes nothing.
-- o_scopes: ordered by their octets. A scope that comes (back) starts with the checkpoint generation_start; one that goes
-- keeps its checkpoint.
-- Errors: the class-SY error of a failed assignment function.
DECLARE
  v_before text[];
BEGIN
  SELECT coalesce(array_agg(d.scope_id ORDER BY d.scope_id COLLATE "C"), '{}'),
         coalesce((SELECT array_agg(s.scope_id ORDER BY s.scope_id COLLATE "C")
                     FROM synchro.client_scope s WHERE s.client_no = p_client.client_no AND s.assigned), '{}')
    INTO o_scopes, v_before
    FROM (SELECT 'user:' || p_client.user_id COLLATE "C" AS scope_id
           WHERE NOT EXISTS (SELECT FROM synchro.user_scope u
                              WHERE u.user_id = p_client.user_id AND u.scope_id = 'user:' || p_client.user_id AND NOT u.granted)
          UNION SELECT s.scope_id FROM synchro.shared_scope s
          UNION SELECT u.scope_id FROM synchro.user_scope u WHERE u.user_id = p_client.user_id AND u.granted
          UNION SELECT a.scope_id COLLATE "C" FROM synchro.assignment_function f
                  CROSS JOIN LATERAL synchro._evaluate_assignment(p_client.user_id) a (scope_id)) d;
  o_scope_set_version := p_client.scope_set_version;
  IF o_scopes = v_before THEN
    RETURN;
  END IF;

  o_scope_set_version := synchro._next(o_scope_set_version);
  UPDATE synchro.client c SET scope_set_version = o_scope_set_version WHERE c.client_no = p_client.client_no;
  UPDATE synchro.client_scope s SET assigned = false
   WHERE s.client_no = p_client.client_no AND s.assigned AND s.scope_id <> ALL (o_scopes);
  INSERT INTO synchro.client_scope AS s (client_no, scope_id, assigned)
  SELECT p_client.client_no, a.scope_id, true FROM unnest(o_scopes) a (scope_id) WHERE a.scope_id <> ALL (v_before)
  ON CONFLICT (client_no, scope_id) DO UPDATE
    SET assigned = true, ack_kind = 'generation_start', ack_lsn = NULL, ack_event = NULL, ack_effect = NULL;
END
$fn$;
