CREATE FUNCTION synchro._push_execute(p_client synchro.client, p_claims jsonb, p_schema_version bigint, p_batch_id uuid,
                                      p_atomic boolean, p_mutations text) RETURNS text LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- First execution of a batch whose ledger entry is claimed: executes what is new, records every new outcome, returns the body.
-- A mutation that another batch completed contributes its stored outcome. Errors: idempotency_conflict; invalid_request, since an
-- atomic group shares no mutation with another batch; temporary_unavailable.
DECLARE
  v_schema       text := (SELECT '{"version":' || m.schema_version || ',"hash":"' || m.schema_hash || '"}'
                            FROM synchro.manifest m WHERE m.schema_version = p_schema_version);
  v_ids          uuid[];
  v_heads        text[];
  v_authored     text[];
  v_fingerprints bytea[];
  v_stored       uuid[];
  v_rel_nos      int[];
  v_codes        text[];
  v_messages     text[];
  v_incompatible json[];
  v_applied      int;
  v_epoch        bigint;
  v_body         text;
BEGIN
  SELECT array_agg(r.mutation_id), array_agg(r.head), array_agg(r.authored),
         array_agg(synchro._mutation_fingerprint(p_client.user_id, p_client.client_id, r.mutation::json))
    INTO v_ids, v_heads, v_authored, v_fingerprints
    FROM synchro._push_read(p_mutations) r;
  v_stored := synchro._push_stored(p_client.client_no, p_atomic, v_ids, v_fingerprints);

  SELECT array_agg(CASE WHEN v_ids[c.ord] <> ALL (v_stored) THEN c.rel_no END ORDER BY c.ord), array_agg(c.code ORDER BY c.ord),
         array_agg(c.message ORDER BY c.ord), array_agg(to_json(c.incompatible) ORDER BY c.ord)
    INTO v_rel_nos, v_codes, v_messages, v_incompatible
    FROM synchro._push_classify(p_schema_version, p_mutations) c;
  IF p_atomic AND cardinality(array_remove(v_codes, NULL)) > 0 THEN
    -- nothing is executed: the first one that can't be fails the group
    SELECT array_agg(CASE WHEN a.first THEN a.code ELSE 'atomic_batch_rejected' END ORDER BY a.ord),
           array_agg(CASE WHEN a.first THEN v_messages[a.ord] ELSE 'another mutation of the group was rejected' END ORDER BY a.ord),
           array_agg(NULL::int)
      INTO v_codes, v_messages, v_rel_nos
      FROM (SELECT c.code, c.ord, c.ord = min(c.ord) FILTER (WHERE c.code IS NOT NULL) OVER () AS first
              FROM unnest(v_codes) WITH ORDINALITY AS c(code, ord)) AS a;
  END IF;

  WITH outcome AS (
    SELECT n.ord, coalesce(a.code, n.code) AS code, coalesce(a.message, n.message) AS message, a.server_version, a.server_row,
           a.row_digest, n.incompatible, n.head, n.authored
      FROM unnest(v_ids, v_heads, v_authored, v_codes, v_messages, v_incompatible)
             WITH ORDINALITY AS n(id, head, authored, code, message, incompatible, ord)
      LEFT JOIN synchro._push_apply(p_client.client_no, p_client.user_id, p_claims, p_schema_version, p_atomic, p_mutations,
                                    v_rel_nos) AS a ON a.ord = n.ord
     WHERE n.id <> ALL (v_stored)
  ), recorded AS (
    INSERT INTO synchro.push_mutation (client_no, mutation_id, batch_id, fingerprint, accepted, outcome)
    SELECT p_client.client_no, v_ids[o.ord], p_batch_id, v_fingerprints[o.ord], o.code IS NULL,
           o.head || ',"outcome_schema":' || v_schema
           || CASE WHEN o.code IS NULL THEN ',"status":"applied"'
                   ELSE ',"status":"' || CASE WHEN o.code IN ('version_conflict', 'row_already_exists', 'row_deleted', 'row_not_found')
                                              THEN 'conflict' ELSE 'rejected_terminal' END
                        || '","code":"' || o.code || '","message":' || to_json(o.message) END
           || CASE WHEN o.code = 'schema_incompatible'
                   THEN ',"retryable":false,"authored_schema":' || o.authored || ',"current_schema":' || v_schema
                        || ',"incompatible_field_ids":' || o.incompatible ELSE '' END
           || coalesce(',"server_version":"' || o.server_version || '"', '')
           || coalesce(',"server_row":' || o.server_row || ',"row_checksum":' || synchro._checksum(encode(o.row_digest, 'hex')), '')
           || '}'
      FROM outcome o
    RETURNING mutation_id, accepted, outcome
  ), complete AS (
    SELECT r.mutation_id, r.accepted, r.outcome, r.accepted AS applied FROM recorded r
    UNION ALL
    SELECT s.mutation_id, s.accepted, s.outcome, false FROM synchro.push_mutation s
     WHERE s.client_no = p_client.client_no AND s.mutation_id = ANY (v_stored)
  )
  SELECT count(*) FILTER (WHERE c.applied),
         '{"batch_id":"' || p_batch_id || '","server_time":"' || synchro._wire_time(now()) || '","accepted":['
         || coalesce(string_agg(c.outcome, ',' ORDER BY n.ord) FILTER (WHERE c.accepted), '')
         || '],"rejected":[' || coalesce(string_agg(c.outcome, ',' ORDER BY n.ord) FILTER (WHERE NOT c.accepted), '') || ']}'
    INTO v_applied, v_body
    FROM complete c JOIN unnest(v_ids) WITH ORDINALITY AS n(id, ord) ON n.id = c.mutation_id;

  IF v_applied > 0 THEN
    UPDATE synchro.client c SET accepted_write_epoch = synchro._next(c.accepted_write_epoch) WHERE c.client_no = p_client.client_no
    RETURNING c.accepted_write_epoch INTO v_epoch;
    PERFORM synchro._emit_push(p_client.client_no, v_epoch);
  END IF;
  RETURN v_body;
END
$fn$;
