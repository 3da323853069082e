CREATE FUNCTION synchro._render_changes(p_entries synchro.scope_entry[], p_cursors synchro.scope_cursor[], p_schema_version bigint)
RETURNS text LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Changes of a page, in its order, comma separated. p_cursors: gives the ids of the scopes.
-- Errors: SY011 when an entry has no projection row of its version.
DECLARE
  v_relation record;
  v_ordinals bigint[];
  v_changes  text[];
  v_done     bigint[] := '{}';
  v_parts    text[] := '{}';
BEGIN
  FOR v_relation IN
    SELECT k.* FROM synchro.synced_relation k
     WHERE k.schema_version = p_schema_version AND k.rel_no IN (SELECT e.rel_no FROM unnest(p_entries) e)
  LOOP
    EXECUTE format($q$
      SELECT array_agg(e.ordinality),
             array_agg('{"scope":' || to_json(c.scope_id) || ',"table":"%1$s","op":"'
               || CASE e.state WHEN 'l' THEN 'upsert' ELSE 'delete' END || '","pk":{"%2$s":' || synchro._key_json(%3$L, e.key) || '}'
               || CASE WHEN e.state = 'x' THEN ''
                       ELSE ',"row":' || synchro._row_json($4, $3, r) || ',"row_checksum":' || synchro._checksum(
                         CASE e.digest_schema WHEN $3 THEN e.row_digest ELSE synchro._row_digest($4, $3, r, e.server_version) END)
                  END
               || ',"server_version":' || to_json(e.server_version) || '}')
        FROM unnest($1) WITH ORDINALITY e
        JOIN unnest($2) c ON c.scope_no = e.scope_no
        LEFT JOIN synchro_data.%4$I r ON e.state <> 'x' AND r.%5$I = synchro._key_text(%3$L, e.key)::%6$s
                                     AND r.server_version = e.server_version
       WHERE e.rel_no = $4 $q$,
      v_relation.table_id, v_relation.key_field_id, v_relation.pk_type, v_relation.projection, v_relation.key_column, v_relation.key_type)
      INTO v_ordinals, v_changes USING p_entries, p_cursors, p_schema_version, v_relation.rel_no;
    v_done := v_done || v_ordinals;
    v_parts := v_parts || v_changes;
  END LOOP;
  -- A change of a missing row is NULL, and one of a relation that is not registered is not there at all.
  IF array_position(v_parts, NULL) IS NOT NULL OR cardinality(v_done) <> cardinality(p_entries) THEN
    PERFORM synchro._raise('sync_integrity_failure');
  END IF;
  RETURN coalesce((SELECT string_agg(p.change, ',' ORDER BY p.n) FROM unnest(v_done, v_parts) p (n, change)), '');
END
$fn$;
