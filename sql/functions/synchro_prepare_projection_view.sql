CREATE FUNCTION synchro.synchro_prepare_projection_view(p_relation_name text, p_view_name text, p_projected_columns text[])
RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Makes the view synchro_projection.<p_view_name> over the relation's captured columns, for membership functions to read.
-- p_projected_columns: names of the relation's columns, at least one; the view keeps their names and types.
-- The relation's owner gets SELECT on the view. Repeating the same call changes nothing, or lets another owner read it.
-- Errors: refusals of the relation; 22023 for columns or a view name that do not fit; 55000 another view or shape exists.
DECLARE
  v_oid    oid := synchro._resolve_relation(p_relation_name);
  v_owner  name := (SELECT pg_get_userbyid(c.relowner) FROM pg_class c WHERE c.oid = v_oid);
  v_rel_no int;
  v_old    record;
  v_list   text;
BEGIN
  PERFORM synchro._registration_lock();
  IF coalesce(p_view_name, '') = '' OR octet_length(p_view_name) > 63 THEN
    RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'a view name has 1 to 63 octets', HINT = 'the view is made in schema synchro_projection: a name without schema';
  END IF;
  PERFORM synchro._check_columns(v_oid, p_projected_columns);
  IF cardinality(p_projected_columns) = 0 THEN
    RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'a projection view needs at least one column',
      HINT = 'name every column that functions may need';
  END IF;
  PERFORM synchro._renew_relation(v_oid);
  SELECT l.relation_oid, l.view_name, l.view_columns, l.rel_no INTO v_old FROM synchro.relation l
   WHERE (l.relation_oid = v_oid AND l.view_name IS NOT NULL) OR l.view_name = p_view_name
   ORDER BY l.relation_oid = v_oid DESC LIMIT 1;
  IF FOUND THEN
    IF v_old.relation_oid = v_oid AND v_old.view_name = p_view_name
       AND v_old.view_columns::text[] = p_projected_columns THEN
      IF NOT has_table_privilege(v_owner, format('synchro_projection.%I', p_view_name), 'SELECT') THEN   -- the relation has another owner
        EXECUTE format('GRANT SELECT ON synchro_projection.%I TO %I', p_view_name, v_owner);
        EXECUTE format('GRANT EXECUTE ON FUNCTION synchro._may_read(oid) TO %I', v_owner);
      END IF;
      RETURN;
    END IF;
    IF v_old.relation_oid <> v_oid THEN
      RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = 'projection view identity is immutable',
        DETAIL = 'The name is that of another relation''s view.', HINT = 'choose another name';
    END IF;
    RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = 'projection view identity is immutable',
      DETAIL = format('The relation''s view is %I(%s).', v_old.view_name, (SELECT string_agg(quote_ident(c), ', ') FROM unnest(v_old.view_columns) c)),
      HINT = 'name every column that functions may need in the first call';
  END IF;
  -- A column that is captured from now on has no values of the rows that are there.
  IF EXISTS (SELECT FROM synchro.relation l WHERE l.relation_oid = v_oid AND synchro._is_held(l.rel_no)
               AND EXISTS (SELECT FROM unnest(p_projected_columns::name[]) p(name)
                            WHERE NOT EXISTS (SELECT FROM synchro.captured_column c WHERE c.rel_no = l.rel_no AND c.column_name = p.name))) THEN
    RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = 'the relation is registered, and not all of these columns are captured',
      HINT = 'prepare the view before the registration, or register the columns first';
  END IF;
  v_rel_no := synchro._capture_columns(v_oid, p_projected_columns::name[]);
  UPDATE synchro.relation SET view_name = p_view_name, view_columns = p_projected_columns::name[] WHERE rel_no = v_rel_no;
  SELECT string_agg(CASE WHEN synchro._storage_type(c.source_type) = format('pg_catalog.%I', t.typname)
                              AND t.typnamespace = 'pg_catalog'::regnamespace
                         THEN format('c%s AS %I', c.attnum, c.column_name)
                         ELSE format('c%s::%s AS %I', c.attnum, format_type(c.source_type, NULL), c.column_name) END,
                    ', ' ORDER BY array_position(p_projected_columns::name[], c.column_name))
    INTO v_list
    FROM synchro.captured_column c JOIN pg_type t ON t.oid = c.source_type
   WHERE c.rel_no = v_rel_no AND c.column_name = ANY (p_projected_columns::name[]);
  -- One that a dump brought along is put over the new projection; functions that read it stay.
  EXECUTE format('CREATE OR REPLACE VIEW synchro_projection.%I AS SELECT %s FROM synchro_data.r_%s WHERE synchro._may_read(%s)',
                 p_view_name, v_list, v_rel_no, v_oid);
  EXECUTE format('REVOKE ALL ON synchro_projection.%I FROM PUBLIC', p_view_name);
  EXECUTE format('REVOKE ALL ON TYPE synchro_projection.%I FROM PUBLIC', p_view_name);
  EXECUTE format('GRANT SELECT ON synchro_projection.%I TO %I', p_view_name, v_owner);
  EXECUTE format('GRANT EXECUTE ON FUNCTION synchro._may_read(oid) TO %I', v_owner);
END
$fn$;
