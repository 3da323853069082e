CREATE FUNCTION synchro.synchro_rotate_keys() RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Makes a new active key for every purpose. The one before goes on verifying what it has signed until synchro_retire_key().
-- Returns purpose -> {"active", "replaced"}, ids of keys. Locks: secret_key against other rotations and retirements; readers go on.
DECLARE
  v_purpose text;
  v_old     text;
  v_result  jsonb := '{}';
BEGIN
  LOCK TABLE synchro.secret_key IN SHARE ROW EXCLUSIVE MODE;
  FOR v_purpose IN SELECT DISTINCT k.purpose FROM synchro.secret_key k ORDER BY 1 LOOP
    v_old := NULL;
    UPDATE synchro.secret_key k SET state = 'verify_only' WHERE k.purpose = v_purpose AND k.state = 'active' RETURNING k.key_id INTO v_old;
    v_result := v_result || jsonb_build_object(v_purpose, jsonb_build_object('active', synchro._make_key(v_purpose), 'replaced', v_old));
  END LOOP;
  RETURN v_result;
END
$fn$;
