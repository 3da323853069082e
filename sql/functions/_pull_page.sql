CREATE FUNCTION synchro._pull_page(p_cursors synchro.scope_cursor[], p_assigned text[], p_schema_version bigint, p_boundary pg_lsn,
  p_limit int, OUT o_changes text, OUT o_more boolean, OUT o_valid synchro.scope_cursor[], OUT o_cursors synchro.scope_cursor[])
LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- One page: the effects after each cursor, merged by position, scope, table and key, at most p_limit, fewer where rows are large.
-- p_cursors: valid ones in the order of their scope ids, of scopes that may have been taken away. p_boundary: commit of B.
-- o_changes: the rendered changes, comma separated. o_more: some candidate is left.
-- o_valid: cursors of assigned scopes. o_cursors: the same, advanced to the last effect delivered; without more, B is meant.
-- Errors: SY011 when a projection row is missing or two effects of a scope share a position.
DECLARE
  v_rels    int[];
  v_entries synchro.scope_entry[];
  v_take    int;
BEGIN
  o_changes := '';
  o_more := false;
  o_valid := ARRAY(SELECT c FROM unnest(p_cursors) c JOIN unnest(p_assigned) a (scope_id) ON a.scope_id = c.scope_id ORDER BY c.scope_id COLLATE "C");
  o_cursors := o_valid;
  IF NOT EXISTS (SELECT FROM unnest(o_valid) c WHERE (c.high_lsn, 9223372036854775807) > (c.lsn, c.event)) THEN
    RETURN;
  END IF;

  v_rels := ARRAY(SELECT f.rel_no FROM synchro.manifest_field f WHERE f.schema_version = p_schema_version AND f.is_key);
  v_entries := ARRAY(
    SELECT e.entry
      FROM unnest(o_valid) c
      CROSS JOIN LATERAL (
        SELECT x AS entry, x.commit_lsn, x.event_ordinal, x.effect_ordinal, x.rel_no, x.key
          FROM synchro.scope_entry x
         WHERE x.scope_no = c.scope_no AND (x.commit_lsn, x.event_ordinal, x.effect_ordinal) > (c.lsn, c.event, c.effect)
           AND x.commit_lsn <= p_boundary AND x.rel_no = ANY (v_rels)
         ORDER BY x.commit_lsn, x.event_ordinal, x.effect_ordinal LIMIT p_limit + 1) e
      JOIN synchro.relation r ON r.rel_no = e.rel_no
     WHERE (c.high_lsn, 9223372036854775807) > (c.lsn, c.event)
     ORDER BY e.commit_lsn, e.event_ordinal, e.effect_ordinal, c.scope_id COLLATE "C", r.table_id, e.key
     LIMIT p_limit + 1);
  v_take := least(synchro._page_rows(v_entries, p_schema_version), p_limit);
  IF cardinality(v_entries) > v_take THEN
    o_more := true;
    IF (v_entries[v_take].scope_no, v_entries[v_take].commit_lsn, v_entries[v_take].event_ordinal, v_entries[v_take].effect_ordinal)
       = (v_entries[v_take + 1].scope_no, v_entries[v_take + 1].commit_lsn, v_entries[v_take + 1].event_ordinal,
          v_entries[v_take + 1].effect_ordinal) THEN
      PERFORM synchro._raise('sync_integrity_failure');
    END IF;
    v_entries := v_entries[:v_take];
    o_cursors := ARRAY(
      SELECT (c.scope_no, c.scope_id, coalesce(l.commit_lsn, c.lsn), coalesce(l.event_ordinal, c.event), coalesce(l.effect_ordinal, c.effect),
              c.membership_generation, c.retention_generation, c.high_lsn)::synchro.scope_cursor
        FROM unnest(o_valid) WITH ORDINALITY c
        LEFT JOIN (SELECT DISTINCT ON (e.scope_no) e.scope_no, e.commit_lsn, e.event_ordinal, e.effect_ordinal
                     FROM unnest(v_entries) WITH ORDINALITY e ORDER BY e.scope_no, e.ordinality DESC) l ON l.scope_no = c.scope_no
       ORDER BY c.ordinality);
  END IF;
  o_changes := synchro._render_changes(v_entries, o_valid, p_schema_version);
END
$fn$;
