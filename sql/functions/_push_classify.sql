CREATE FUNCTION synchro._push_classify(p_schema_version bigint, p_request text)
RETURNS TABLE (shape int, rel_no int, code text, message text, incompatible text[])
LANGUAGE sql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- What the manifests and the registration in force say of each shape of mutations, before any value or row is looked at.
SELECT s.shape, v.rel_no, v.code, v.message, v.incompatible
  FROM synchro._push_shapes(p_request) s
 CROSS JOIN LATERAL synchro._push_verdict(p_schema_version, s.table_id, s.key_field, s.fields, s.authored_version, s.authored_hash) v
$fn$;
