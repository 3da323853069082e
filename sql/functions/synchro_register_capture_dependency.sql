CREATE FUNCTION synchro.synchro_register_capture_dependency(p_relation_name text, p_capture_key_columns text[], p_captured_columns text[])
RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Registers a relation for capture only, because membership of synced tables depends on it: no client ever sees it.
-- p_capture_key_columns: the one column of its primary key. p_captured_columns: what functions need of it; the key is captured anyway.
-- Complete at commit, as synchro_register_table is. Repeating an unchanged registration changes nothing, unless capture is blocked
-- because of the relation: then all its rows are read anew.
-- Errors: the reasons of docs/registration.md, each with its SQLSTATE; 55P03 while the relation is being written.
-- Locks: SHARE ROW EXCLUSIVE on the relation until commit (writers wait).
DECLARE
  v_oid oid := synchro._resolve_relation(p_relation_name);
  v_new synchro.registration;
  v_old synchro.registration;
BEGIN
  PERFORM synchro._registration_lock();
  IF coalesce(cardinality(p_capture_key_columns), 0) = 0 OR p_capture_key_columns[1] IS NULL THEN
    PERFORM synchro._refuse('missing_primary_key', 'no key column was named', 'name the primary key''s column in p_capture_key_columns');
  ELSIF cardinality(p_capture_key_columns) > 1 THEN
    PERFORM synchro._refuse('composite_primary_key', 'a capture key has one column', 'name the primary key''s one column');
  END IF;
  v_new.key_attnum := synchro._resolve_key(v_oid, p_capture_key_columns[1], false);
  SELECT a.attname, a.atttypid INTO v_new.key_column, v_new.key_type
    FROM pg_attribute a WHERE a.attrelid = v_oid AND a.attnum = v_new.key_attnum;
  v_new.pk_type := synchro._key_type(v_new.key_type);
  PERFORM synchro._check_columns(v_oid, p_captured_columns);
  IF cardinality(p_captured_columns) = 0 THEN
    PERFORM synchro._refuse('invalid_configuration', 'a capture dependency captures at least one column',
                            'name in p_captured_columns what membership and impact functions need of it');
  END IF;
  PERFORM synchro._check_privileges(v_oid, false);
  v_new.kind := 'capture_dependency';
  v_new.sync_columns := '{}';
  v_new.text_columns := '{}';
  v_new.required_columns := '{}';
  SELECT array_agg(a.attname ORDER BY a.attnum) INTO v_new.captured_columns FROM pg_attribute a
   WHERE a.attrelid = v_oid AND a.attname = ANY (p_captured_columns || v_new.key_column::text) AND NOT a.attisdropped;

  SELECT r.* INTO v_old FROM synchro.registration r JOIN synchro.relation l ON l.rel_no = r.rel_no
   WHERE l.relation_oid = v_oid AND r.generation = synchro._newest_generation();
  IF v_old.kind = 'synced' THEN
    PERFORM synchro._refuse('invalid_configuration', 'the relation is synced, and captured for that',
      'other tables can depend on it as it is; columns that clients don''t get are captured when its projection view names them. '
      'To take it away from clients, call synchro_unregister_table first, in the same transaction');
  ELSIF v_old.rel_no IS NOT NULL THEN
    v_new.generation := v_old.generation;
    v_new.rel_no := v_old.rel_no;
    v_new.since := v_old.since;
    v_new.amends := v_old.amends;
    IF v_new IS DISTINCT FROM v_old OR synchro._is_blocked(v_old.rel_no) THEN
      PERFORM synchro._replace_registration(v_oid, v_old, v_new);
    END IF;
    RETURN;
  END IF;
  PERFORM synchro._admit_relation(v_oid, v_new);
END
$fn$;
