CREATE FUNCTION synchro._rebuild_page(p_client synchro.client, p_session synchro.rebuild_session, p_token jsonb) RETURNS text LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- The page of a session that a continuation asks for, the first one without; NULL when its stage, or a key of its tokens, is no longer in
-- force. Only the session and its stage determine the octets. With its last page a session is completed: what its final cursor needs
-- is kept from then on by what the client has acknowledged.
-- Errors: SY001 when p_token is not one that this session gave out; SY011 when the stage lacks a row.
DECLARE
  v_stage    record;
  v_token    text;
  v_bound    jsonb;
  v_ordinal  bigint := 0;
  v_records  text;
  v_count    bigint;
  v_found    bigint;
  v_from     bigint;
  v_next     bigint;
  v_issued   bigint := extract(epoch FROM p_session.issued_at) * 1000000;
BEGIN
  SELECT g.*, m.schema_hash INTO v_stage
    FROM synchro.live_stage g JOIN synchro.manifest m ON m.schema_version = g.schema_version
   WHERE g.stage_no = p_session.stage_no;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  -- What every continuation of the session is bound to; "o", the row it goes on with, varies.
  v_bound := jsonb_build_object(
    'v', 1, 'u', p_client.user_id, 'c', p_client.client_id, 'g', p_session.client_generation, 's', p_session.scope_id,
    'h', v_stage.schema_hash, 'sg', v_stage.stream_generation, 'm', v_stage.membership_generation, 'r', v_stage.retention_generation,
    'i', p_session.rebuild_id, 'st', p_session.stage_no, 'l', v_stage.boundary_lsn, 'n', p_session.page_limit,
    'w', p_session.write_epoch, 't', v_issued, 'x', (extract(epoch FROM p_session.expires_at) * 1000000)::bigint);
  IF p_token IS NOT NULL THEN
    v_ordinal := CASE jsonb_typeof(p_token -> 'o') WHEN 'number' THEN p_token ->> 'o' END::bigint;
    IF p_token - 'o' - 'kid' <> v_bound OR v_ordinal NOT BETWEEN 1 AND v_stage.cardinality - 1 OR v_ordinal IS NULL THEN
      PERFORM synchro._raise('invalid_request', '{"message":"invalid request: cursor: not a continuation of this attempt"}');
    END IF;
  END IF;

  -- The limit of the session, or fewer where rows are large. Only the first and the last chunk may hold rows of other pages.
  v_from := (SELECT max(c.ordinal) FROM synchro.rebuild_chunk c WHERE c.stage_no = p_session.stage_no AND c.ordinal <= v_ordinal);
  SELECT string_agg(CASE WHEN r.first = 1 AND r.last = r.row_count THEN r.records
                         ELSE array_to_string((string_to_array(r.records, E',\n'))[r.first:r.last], E',\n') END, E',\n' ORDER BY r.ordinal)
           FILTER (WHERE r.taken),
         sum(r.last - r.first + 1) FILTER (WHERE r.taken), sum(r.last - r.first + 1)
    INTO v_records, v_count, v_found
    FROM (SELECT c.ordinal, c.records, c.row_count, greatest(v_ordinal - c.ordinal, 0) + 1 AS first, least(v_ordinal + p_session.page_limit - c.ordinal, c.row_count) AS last,
                 c.ordinal = v_from OR sum(octet_length(c.records)) OVER (ORDER BY c.ordinal) <= (SELECT synchro._page_octets()) AS taken
            FROM synchro.rebuild_chunk c
           WHERE c.stage_no = p_session.stage_no AND c.ordinal >= v_from AND c.ordinal < v_ordinal + p_session.page_limit) r;
  IF coalesce(v_found, 0) <> least(v_stage.cardinality - v_ordinal, p_session.page_limit) THEN
    PERFORM synchro._raise('sync_integrity_failure');
  END IF;
  v_next := v_ordinal + coalesce(v_count, 0);

  IF v_next < v_stage.cardinality THEN
    v_token := synchro._token_sign('rebuild', v_bound || jsonb_build_object('o', v_next), p_session.rebuild_key);
    RETURN '{"records":[' || v_records || '],"cursor":' || to_json(v_token) || ',"has_more":true}';
  END IF;
  IF NOT p_session.completed THEN
    UPDATE synchro.rebuild_session r SET completed = true WHERE r.client_no = p_session.client_no AND r.rebuild_id = p_session.rebuild_id;
  END IF;
  v_token := synchro._cursor_sign(v_stage.boundary_lsn, 9223372036854775807, 2147483647, v_stage.stream_generation, p_client.user_id,
    p_client.client_id, p_session.client_generation, p_session.scope_id, v_stage.schema_hash, v_stage.membership_generation,
    v_stage.retention_generation, v_issued, p_session.cursor_key);
  RETURN '{"records":[' || coalesce(v_records, '') || '],"cursor":null,"has_more":false,"final_scope_cursor":' || to_json(v_token)
    || ',"checksum":' || synchro._checksum(v_stage.digest) || '}';
END
$fn$;
