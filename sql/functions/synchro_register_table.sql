CREATE FUNCTION synchro.synchro_register_table(
  p_table_name text, p_membership_function text, p_composition text DEFAULT 'single_scope',
  p_pk_column text DEFAULT 'id', p_updated_at_col text DEFAULT NULL, p_deleted_at_col text DEFAULT NULL,
  p_push_policy text DEFAULT 'enabled', p_exclude_columns text[] DEFAULT '{}', p_sync_columns text[] DEFAULT '{}',
  p_max_scope_fanout int DEFAULT 8, p_affected_scopes text[] DEFAULT '{}', p_text_columns text[] DEFAULT '{}',
  p_created_at_col text DEFAULT NULL)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Registers a table for sync, in the generation that this transaction builds.
-- p_table_name: schema.table. p_membership_function: schema.function, taking the key's type, returning SETOF text.
-- p_sync_columns: columns to sync ('{}': all but p_exclude_columns). p_text_columns: synced as canonical text.
-- The call is complete at commit: then functions are checked, existing rows are baselined and the manifest is made.
-- Repeating an unchanged registration changes nothing. A changed rule, of function (or its definition), composition or bound, is staged by
-- the worker before it comes into force. p_affected_scopes: the scopes that the change may affect, and that get a new membership
-- generation; '{}': those that the server finds. A registration with other columns, or of a capture dependency, replaces the one so far.
-- While capture is blocked because of the table, any call reads all its rows anew, so that capture can go on without those of the stream.
-- Errors: the reasons of docs/registration.md, each with its SQLSTATE; 55P03 while the table is being written.
-- Locks: SHARE ROW EXCLUSIVE on the table until commit (writers wait).
DECLARE
  v_oid     oid := synchro._resolve_relation(p_table_name);
  v_push    boolean := p_push_policy = 'enabled';
  v_columns name[];
  v_new     synchro.registration;
  v_old     synchro.registration;
BEGIN
  PERFORM synchro._registration_lock();
  IF p_composition IS NULL OR p_composition NOT IN ('single_scope', 'multi_scope') THEN
    PERFORM synchro._refuse('invalid_configuration', 'the composition is single_scope or multi_scope',
                            'single_scope: each row is in one scope at most; multi_scope: in up to p_max_scope_fanout');
  ELSIF p_push_policy IS NULL OR p_push_policy NOT IN ('enabled', 'read_only') THEN
    PERFORM synchro._refuse('invalid_configuration', 'the push policy is enabled or read_only',
                            'read_only: clients can''t write');
  ELSIF p_max_scope_fanout IS NULL OR p_max_scope_fanout NOT BETWEEN 1 AND 10000 THEN
    PERFORM synchro._refuse('invalid_limit', 'p_max_scope_fanout must be from 1 to 10000',
                            'rows that everybody may see belong in one shared scope');
  ELSIF p_pk_column IS NULL THEN
    PERFORM synchro._refuse('missing_primary_key', 'no key column was named', 'name the column of the primary key in p_pk_column');
  ELSIF p_affected_scopes IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'p_affected_scopes is a list of scope ids';
  END IF;
  PERFORM synchro._check_scope_id(s) FROM unnest(p_affected_scopes) s;
  v_new.key_attnum := synchro._resolve_key(v_oid, p_pk_column, v_push);
  SELECT a.atttypid INTO v_new.key_type FROM pg_attribute a WHERE a.attrelid = v_oid AND a.attnum = v_new.key_attnum;
  v_new.key_column := p_pk_column;
  v_new.pk_type := synchro._key_type(v_new.key_type);
  v_columns := synchro._resolve_sync_columns(v_oid, p_pk_column, p_sync_columns, p_exclude_columns, p_text_columns,
                                             ARRAY[p_created_at_col, p_updated_at_col, p_deleted_at_col], p_deleted_at_col);
  PERFORM synchro._check_privileges(v_oid, v_push);
  v_new.kind := 'synced';
  v_new.composition := p_composition;
  v_new.push_policy := p_push_policy;
  v_new.membership_function := synchro._resolve_function(p_membership_function, ARRAY[v_new.key_type]);
  v_new.membership_hash := synchro._definition_hash(v_new.membership_function);
  v_new.max_scope_fanout := p_max_scope_fanout;
  v_new.created_at_column := p_created_at_col;
  v_new.updated_at_column := p_updated_at_col;
  v_new.deleted_at_column := p_deleted_at_col;
  v_new.sync_columns := v_columns;
  v_new.text_columns := ARRAY(SELECT c FROM unnest(p_text_columns::name[]) c ORDER BY c);
  v_new.required_columns := synchro._required_columns(v_oid, v_columns);

  SELECT r.* INTO v_old FROM synchro.registration r JOIN synchro.relation l ON l.rel_no = r.rel_no
   WHERE l.relation_oid = v_oid AND r.generation = synchro._newest_generation();
  IF v_old.rel_no IS NOT NULL THEN
    PERFORM synchro._change_registration(v_oid, v_old, v_new, p_affected_scopes);
    RETURN;
  ELSIF p_affected_scopes <> '{}' THEN
    RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'p_affected_scopes belongs to a changed membership rule only',
      HINT = 'leave it out where no rule of a registered table changes';
  END IF;

  PERFORM synchro._admit_relation(v_oid, v_new);
END
$fn$;
