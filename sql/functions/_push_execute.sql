CREATE FUNCTION synchro._push_execute(p_client synchro.client, p_claims jsonb, p_schema_version bigint, p_request json)
RETURNS text LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- First execution of a batch whose ledger entry is claimed: executes what is new, records every new outcome, returns the body.
-- A mutation that another batch completed contributes its stored outcome. Errors: idempotency_conflict; invalid_request, since an
-- atomic group shares no mutation with another batch and names no row twice; temporary_unavailable.
DECLARE
  v_batch_id     uuid := p_request->>'batch_id';
  v_mutations    json := p_request->'mutations';
  v_atomic       boolean := p_request->>'atomic' IS NOT NULL;
  v_schema       text := (SELECT '{"version":' || m.schema_version || ',"hash":"' || m.schema_hash || '"}'
                            FROM synchro.manifest m WHERE m.schema_version = p_schema_version);
  v_time         text := to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"');
  v_ids          uuid[];
  v_fingerprints bytea[];
  v_stored       boolean[];
  v_rel_nos      int[];
  v_codes        text[];
  v_messages     text[];
  v_incompatible json[];
  v_applied      int;
  v_epoch        bigint;
BEGIN
  SELECT array_agg(x.id ORDER BY e.ord), array_agg(x.fingerprint ORDER BY e.ord), array_agg(s.mutation_id IS NOT NULL ORDER BY e.ord)
    INTO v_ids, v_fingerprints, v_stored
    FROM json_array_elements(v_mutations) WITH ORDINALITY AS e(value, ord)
   CROSS JOIN LATERAL (SELECT (e.value->>'mutation_id')::uuid AS id,
                              synchro._mutation_fingerprint(p_client.user_id, p_client.client_id, e.value) AS fingerprint) AS x
    LEFT JOIN synchro.push_mutation s ON s.client_no = p_client.client_no AND s.mutation_id = x.id;
  IF true = ANY (v_stored) THEN
    PERFORM synchro._push_check_stored(p_client.client_no, v_atomic, v_ids, v_fingerprints);
  END IF;
  IF v_atomic AND EXISTS (SELECT FROM json_array_elements(v_mutations) AS e(value)
                           GROUP BY e.value->>'table', synchro._jcs(e.value->'pk') HAVING count(*) > 1) THEN
    PERFORM synchro._raise('invalid_request');
  END IF;

  SELECT array_agg(CASE WHEN NOT v_stored[c.ord] THEN c.rel_no END ORDER BY c.ord), array_agg(c.code ORDER BY c.ord),
         array_agg(c.message ORDER BY c.ord), array_agg(to_json(c.incompatible) ORDER BY c.ord)
    INTO v_rel_nos, v_codes, v_messages, v_incompatible
    FROM synchro._push_classify(p_schema_version, v_mutations) c;
  IF v_atomic AND EXISTS (SELECT FROM unnest(v_codes) c WHERE c IS NOT NULL) THEN
    SELECT array_agg(CASE WHEN a.first THEN a.code ELSE 'atomic_batch_rejected' END ORDER BY a.ord),
           array_agg(CASE WHEN a.first THEN v_messages[a.ord] ELSE 'another mutation of the group was rejected' END ORDER BY a.ord),
           array_agg(NULL::int)
      INTO v_codes, v_messages, v_rel_nos
      FROM (SELECT c.code, c.ord, c.ord = min(c.ord) FILTER (WHERE c.code IS NOT NULL) OVER () AS first
              FROM unnest(v_codes) WITH ORDINALITY AS c(code, ord)) AS a;
  END IF;

  WITH outcome AS (
    SELECT n.ord, coalesce(a.code, n.code) AS code, coalesce(a.message, n.message) AS message, a.server_version, a.server_row,
           a.row_checksum, n.incompatible,
           '{"mutation_id":"' || n.id || '","table":' || to_json(x."table") || ',"pk":' || x.pk AS head, x.authored_schema
      FROM unnest(v_ids, v_codes, v_messages, v_incompatible) WITH ORDINALITY AS n(id, code, message, incompatible, ord)
      JOIN json_array_elements(v_mutations) WITH ORDINALITY AS e(value, ord) ON e.ord = n.ord
     CROSS JOIN LATERAL json_to_record(e.value) AS x("table" text, pk json, authored_schema json)
      LEFT JOIN synchro._push_apply(p_client.client_no, p_client.user_id, p_claims, p_schema_version, v_atomic, v_mutations::text, v_rel_nos) AS a
        ON a.ord = n.ord
     WHERE NOT v_stored[n.ord]
  ), recorded AS (
    INSERT INTO synchro.push_mutation (client_no, mutation_id, batch_id, fingerprint, accepted, outcome)
    SELECT p_client.client_no, v_ids[o.ord], v_batch_id, v_fingerprints[o.ord], o.code IS NULL,
           o.head || ',"outcome_schema":' || v_schema
           || CASE WHEN o.code IS NULL THEN ',"status":"applied"'
                   ELSE ',"status":"' || CASE WHEN o.code IN ('version_conflict', 'row_already_exists', 'row_deleted', 'row_not_found')
                                              THEN 'conflict' ELSE 'rejected_terminal' END
                        || '","code":"' || o.code || '","message":' || to_json(o.message) END
           || CASE WHEN o.code = 'schema_incompatible'
                   THEN ',"retryable":false,"authored_schema":' || o.authored_schema || ',"current_schema":' || v_schema
                        || ',"incompatible_field_ids":' || o.incompatible ELSE '' END
           || coalesce(',"server_version":"' || o.server_version || '"', '')
           || coalesce(',"server_row":' || o.server_row || ',"row_checksum":{"algorithm":"sha256","version":1,"encoding":"hex","digest":"'
                       || o.row_checksum || '"}', '')
           || '}'
      FROM outcome o
    RETURNING accepted
  )
  SELECT count(*) FILTER (WHERE r.accepted) INTO v_applied FROM recorded r;

  IF v_applied > 0 THEN
    UPDATE synchro.client c SET accepted_write_epoch = c.accepted_write_epoch + 1 WHERE c.client_no = p_client.client_no
    RETURNING c.accepted_write_epoch INTO v_epoch;
    PERFORM synchro._emit_push(p_client.client_no, v_epoch);
  END IF;

  RETURN (
    SELECT '{"batch_id":"' || v_batch_id || '","server_time":"' || v_time || '","accepted":['
           || coalesce(string_agg(s.outcome, ',' ORDER BY n.ord) FILTER (WHERE s.accepted), '')
           || '],"rejected":[' || coalesce(string_agg(s.outcome, ',' ORDER BY n.ord) FILTER (WHERE NOT s.accepted), '') || ']}'
      FROM unnest(v_ids) WITH ORDINALITY AS n(id, ord)
      JOIN synchro.push_mutation s ON s.client_no = p_client.client_no AND s.mutation_id = n.id);
END
$fn$;
