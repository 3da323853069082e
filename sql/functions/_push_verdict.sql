CREATE FUNCTION synchro._push_verdict(p_schema_version bigint, p_table_id text, p_key_field text, p_fields text[],
                                      p_authored_version bigint, p_authored_hash text,
                                      OUT rel_no int, OUT code text, OUT message text, OUT incompatible text[])
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- One verdict of _push_classify. code NULL: nothing against the mutation, rel_no is where it goes. A field is compared between the
-- manifest that the mutation was authored under and the current one, by its id; a manifest that the server never published can't
-- vouch for any field. p_table_id and field ids are whatever the client sent.
DECLARE
  v_no       int;
  v_authored bigint;
  v_policy   text;
  v_verdict  record;
BEGIN
  IF p_table_id ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN
    SELECT l.rel_no INTO v_no FROM synchro.relation l WHERE l.table_id = p_table_id::uuid;
  END IF;
  SELECT r.push_policy INTO v_policy FROM synchro.active_registration r
   WHERE r.rel_no = v_no AND r.kind = 'synced' AND r.schema_version = p_schema_version;
  SELECT m.schema_version INTO v_authored FROM synchro.manifest m
   WHERE m.schema_version = p_authored_version AND m.schema_hash = p_authored_hash;

  SELECT array_agg(f.id ORDER BY f.id COLLATE "C")
           FILTER (WHERE v_authored IS NULL
                      OR (was.field_id IS NOT NULL
                          AND (cur.field_id IS NULL OR cur.type <> was.type OR cur.is_key <> was.is_key
                               OR (f.no > 1 AND was.writable AND NOT cur.writable)))) AS incompatible,
         bool_or(f.no = 1 AND cur.is_key IS NOT TRUE) AS wrong_key,
         bool_or(f.no > 1 AND (was.field_id IS NULL OR cur.field_id IS NULL)) AS unknown,
         bool_or(f.no > 1 AND NOT cur.writable) AS read_only
    INTO v_verdict
    FROM unnest(p_key_field || p_fields) WITH ORDINALITY AS f(id, no)
    LEFT JOIN synchro.manifest_field was ON was.schema_version = v_authored AND was.rel_no = v_no AND was.field_id::text = f.id
    LEFT JOIN synchro.manifest_field cur ON cur.schema_version = p_schema_version AND cur.rel_no = v_no AND cur.field_id::text = f.id;

  incompatible := v_verdict.incompatible;
  IF v_verdict.incompatible IS NOT NULL THEN
    code := 'schema_incompatible';
    message := 'authored mutation cannot be represented by the current schema';
  ELSIF v_policy IS NULL THEN
    code := 'table_not_synced';
    message := 'the table is not synced';
  ELSIF v_policy = 'read_only' THEN
    code := 'policy_rejected';
    message := 'the table is read-only';
  ELSIF v_verdict.wrong_key THEN
    code := 'validation_failed';
    message := 'the key field is not the one of the table';
  ELSIF v_verdict.unknown THEN
    code := 'validation_failed';
    message := 'a field is not part of the schema';
  ELSIF v_verdict.read_only THEN
    code := 'validation_failed';
    message := 'a field is not writable';
  ELSE
    rel_no := v_no;
  END IF;
END
$fn$;
