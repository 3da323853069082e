CREATE FUNCTION synchro._push_execute(p_client synchro.client, p_claims jsonb, p_schema_version bigint, p_batch_id uuid, p_ids uuid[],
                                      p_atomic boolean, p_request text) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- First execution of a batch whose ledger entry is claimed: executes what is new, records every new outcome. p_ids: its mutations.
-- A mutation that another batch completed contributes its stored outcome. Errors: idempotency_conflict; invalid_request, since an
-- atomic group shares no mutation with another batch; temporary_unavailable.
DECLARE
  v_schema       text := (SELECT '{"version":' || m.schema_version || ',"hash":"' || m.schema_hash || '"}'
                            FROM synchro.manifest m WHERE m.schema_version = p_schema_version);
  v_heads        text[];
  v_authored     text[];
  v_fingerprints bytea[];
  v_shapes       int[];
  v_stored       uuid[];
  v_rel_nos      int[];
  v_codes        text[];
  v_messages     text[];
  v_incompatible json[];
  v_applied      boolean;
  v_epoch        bigint;
BEGIN
  SELECT array_agg(r.head), array_agg(r.authored), array_agg(r.fingerprint), array_agg(r.shape)
    INTO v_heads, v_authored, v_fingerprints, v_shapes
    FROM synchro._push_read(p_client.user_id, p_request) r;
  v_stored := synchro._push_stored(p_client.client_no, p_atomic, p_ids, v_fingerprints);

  SELECT array_agg(v.rel_no), array_agg(v.code), array_agg(v.message), array_agg(v.incompatible)
    INTO v_rel_nos, v_codes, v_messages, v_incompatible
    FROM (SELECT CASE WHEN p_ids[n.ord] <> ALL (v_stored) THEN c.rel_no END AS rel_no, c.code, c.message, to_json(c.incompatible) AS incompatible
            FROM unnest(v_shapes) WITH ORDINALITY AS n(shape, ord)
            JOIN synchro._push_classify(p_schema_version, p_request) c USING (shape) ORDER BY n.ord) AS v;
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
      FROM unnest(p_ids, v_heads, v_authored, v_codes, v_messages, v_incompatible)
             WITH ORDINALITY AS n(id, head, authored, code, message, incompatible, ord)
      LEFT JOIN synchro._push_apply(p_client.client_no, p_client.user_id, p_claims, p_schema_version, p_atomic, p_request,
                                    v_rel_nos) AS a ON a.ord = n.ord
     WHERE n.id <> ALL (v_stored)
  ), recorded AS (
    INSERT INTO synchro.push_mutation (client_no, mutation_id, batch_id, fingerprint, accepted, outcome)
    SELECT p_client.client_no, p_ids[o.ord], p_batch_id, v_fingerprints[o.ord], o.code IS NULL,
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
    RETURNING accepted
  )
  SELECT bool_or(r.accepted) INTO v_applied FROM recorded r;

  IF v_applied THEN
    UPDATE synchro.client c SET accepted_write_epoch = synchro._next(c.accepted_write_epoch) WHERE c.client_no = p_client.client_no
    RETURNING c.accepted_write_epoch INTO v_epoch;
    PERFORM synchro._emit_push(p_client.client_no, v_epoch);
  END IF;
END
$fn$;
