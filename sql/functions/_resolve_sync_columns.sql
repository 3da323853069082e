CREATE FUNCTION synchro._resolve_sync_columns(p_relation oid, p_pk_column text, p_sync text[], p_exclude text[], p_text text[],
                                              p_lifecycle text[], p_deleted_at text)
RETURNS name[] LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- The synced columns in attnum order. Errors: invalid_configuration, unsupported_type; 22023 for unknown names.
DECLARE
  v_columns name[];
  v_bad     name;
BEGIN
  PERFORM synchro._check_columns(p_relation, p_sync);
  PERFORM synchro._check_columns(p_relation, p_exclude);
  PERFORM synchro._check_columns(p_relation, p_text);
  PERFORM synchro._check_columns(p_relation, array_remove(p_lifecycle, NULL));
  IF cardinality(p_sync) > 0 AND cardinality(p_exclude) > 0 THEN
    PERFORM synchro._refuse('invalid_configuration', 'give p_sync_columns or p_exclude_columns, not both',
                            'one of them says it all');
  END IF;
  SELECT array_agg(a.attname ORDER BY a.attnum) INTO v_columns FROM pg_attribute a
   WHERE a.attrelid = p_relation AND a.attnum > 0 AND NOT a.attisdropped AND a.attname <> ALL (p_exclude)
     AND (cardinality(p_sync) = 0 OR a.attname = ANY (p_sync));
  IF (p_pk_column = ANY (v_columns)) IS NOT TRUE THEN
    PERFORM synchro._refuse('invalid_configuration', 'the key column must be synced',
                            'name it in p_sync_columns, or leave it out of p_exclude_columns');
  ELSIF NOT (p_text::name[] || array_remove(p_lifecycle, NULL)::name[]) <@ v_columns THEN
    PERFORM synchro._refuse('invalid_configuration', 'text and lifecycle columns must be synced',
                            'name them in p_sync_columns, or leave them out of p_exclude_columns');
  ELSIF p_pk_column = ANY (p_text || array_remove(p_lifecycle, NULL)) THEN
    PERFORM synchro._refuse('invalid_configuration', 'the key is no text or lifecycle column',
                            'leave the key out of p_text_columns, and name other columns for creation, change and deletion');
  ELSIF EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = p_relation AND a.attname = p_deleted_at AND a.attnotnull) THEN
    PERFORM synchro._refuse('invalid_configuration', 'the deletion column must be nullable',
                            'a row is deleted while its column is not null: ALTER TABLE ... ALTER COLUMN ... DROP NOT NULL');
  ELSIF EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = p_relation AND a.attname = p_deleted_at
                   AND synchro._portable_type(a.atttypid, false) NOT IN ('datetime', 'date')) THEN
    PERFORM synchro._refuse('invalid_configuration', 'the deletion column must be a timestamp or a date',
                            'name a column of another type');
  END IF;
  SELECT a.attname INTO v_bad FROM pg_attribute a
   WHERE a.attrelid = p_relation AND a.attname = ANY (v_columns) AND a.attnum > 0
     AND synchro._portable_type(a.atttypid, a.attname = ANY (p_text::name[])) IS NULL
   ORDER BY a.attnum LIMIT 1;
  IF v_bad IS NOT NULL THEN
    PERFORM synchro._refuse('unsupported_type', format('column %I has a type without a portable form', v_bad),
                            'exclude the column, or sync it as text (p_text_columns) where its text is stable');
  END IF;
  RETURN v_columns;
END
$fn$;
