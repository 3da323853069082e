CREATE FUNCTION synchro._push_classify(p_schema_version bigint, p_mutations text)
RETURNS TABLE (ord int, rel_no int, code text, message text, incompatible text[])
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- What the manifests and the registration in force say of each mutation, before any value or row is looked at. Mutations of the
-- same table with the same fields, authored under the same manifest, get the same verdict. In no particular order.
DECLARE
  v_shape record;
BEGIN
  FOR v_shape IN
    SELECT r.table_id, r.key_field, r.fields, r.authored_version, r.authored_hash, array_agg(r.ord) AS ords
      FROM synchro._push_read(p_mutations) r
     GROUP BY r.table_id, r.key_field, r.fields, r.authored_version, r.authored_hash
  LOOP
    RETURN QUERY
    SELECT o.ord, v.rel_no, v.code, v.message, v.incompatible
      FROM synchro._push_verdict(p_schema_version, v_shape.table_id, v_shape.key_field, v_shape.fields, v_shape.authored_version,
                                 v_shape.authored_hash) v
     CROSS JOIN unnest(v_shape.ords) AS o(ord);
  END LOOP;
END
$fn$;
