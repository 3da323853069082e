CREATE FUNCTION synchro._check_representable(p_rel_no int, p_generation bigint, p_table name) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Every baselined value of a synced column, in a table of synchro_data, must have a portable form, and a key at most the 2048 octets that the
-- fence lets in. Errors: unrepresentable_value with column and count.
DECLARE
  v_col   record;
  v_count bigint;
BEGIN
  FOR v_col IN SELECT f.*, c.storage_type FROM synchro._registration_fields(p_generation, p_rel_no) f
                 JOIN synchro.captured_column c ON c.rel_no = p_rel_no AND c.attnum = f.attnum
                WHERE f.type NOT IN ('int', 'int64', 'boolean', 'bytes') ORDER BY f.attnum LOOP
    IF v_col.is_key THEN
      EXECUTE format('SELECT count(*) FROM synchro_data.%I WHERE octet_length(c%s::text) > 2048', p_table, v_col.attnum) INTO v_count;
      IF v_count > 0 THEN
        PERFORM synchro._refuse('unrepresentable_value',
          format('key column %I holds %s keys of more than 2048 octets', v_col.column_name, v_count), 'use a shorter key', NULL, v_col.field_id);
      END IF;
    END IF;
    EXECUTE format('SELECT count(*) FROM synchro_data.%I WHERE NOT synchro._representable(%L::oid, %L, c%s)',
                   p_table, v_col.storage_type::regtype::oid, v_col.as_text, v_col.attnum) INTO v_count;
    IF v_count > 0 THEN
      PERFORM synchro._refuse('unrepresentable_value',
        format('column %I holds %s values without a portable form', v_col.column_name, v_count),
        'correct the values, exclude the column, or sync it as text (p_text_columns)', NULL, v_col.field_id);
    END IF;
  END LOOP;
END
$fn$;
