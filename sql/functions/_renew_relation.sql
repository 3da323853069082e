CREATE FUNCTION synchro._renew_relation(p_relation oid) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- A relation whose key, or a captured column's name, type or place, is no longer what was captured, or that lacks a column of its view, has to become another one: its ids and
-- columns keep their meaning for ever, as manifests and queued writes refer to them. The former identity gives up the
-- physical relation and its projection view; the next introduction makes a new one. Nothing happens while the relation is registered.
-- The caller holds _registration_lock(). Errors: 55000 while functions read the former view.
DECLARE
  v_old record;
BEGIN
  SELECT l.rel_no, l.view_name INTO v_old FROM synchro.relation l
   WHERE l.relation_oid = p_relation AND NOT synchro._is_held(l.rel_no)
     AND NOT EXISTS (SELECT FROM synchro.registration r JOIN synchro.registry_generation g ON g.generation = r.generation
                      WHERE r.rel_no = l.rel_no AND g.xid = pg_current_xact_id_if_assigned())
     AND (EXISTS (SELECT FROM synchro.captured_column c JOIN pg_attribute a
                      ON a.attrelid = p_relation AND a.attnum > 0 AND NOT a.attisdropped AND (a.attnum = c.attnum OR a.attname = c.column_name)
                   WHERE c.rel_no = l.rel_no
                     AND (c.attnum, c.column_name, c.source_type, c.generated) IS DISTINCT FROM (a.attnum, a.attname, a.atttypid, a.attgenerated = 's'))
          OR EXISTS (SELECT FROM unnest(l.view_columns) v(name)
                      WHERE NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = p_relation AND a.attname = v.name AND NOT a.attisdropped))
          OR EXISTS (SELECT FROM pg_index p, pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
                      WHERE p.indrelid = p_relation AND p.indisprimary
                        AND i.indrelid = format('synchro_data.r_%s', l.rel_no)::regclass AND i.indisprimary
                        AND a.attname <> 'c' || p.indkey[0]));
  IF NOT FOUND THEN
    RETURN;
  END IF;
  IF v_old.view_name IS NOT NULL THEN
    EXECUTE format('DROP VIEW synchro_projection.%I', v_old.view_name);
  END IF;
  UPDATE synchro.relation SET relation_oid = NULL, view_name = NULL, view_columns = NULL WHERE rel_no = v_old.rel_no;
EXCEPTION WHEN dependent_objects_still_exist THEN
  RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = 'functions still read the projection view of the relation as it was before',
    HINT = format('the relation becomes another one, with a view of its own: DROP FUNCTION those that read synchro_projection.%I first', v_old.view_name);
END
$fn$;
