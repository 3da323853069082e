CREATE FUNCTION synchro._qualified_name(p_name text) RETURNS text[] LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- {schema, name} of a schema-qualified name, identifiers quoted as in SQL; NULL for anything else.
DECLARE
  v_parts text[];
BEGIN
  v_parts := parse_ident(p_name);   -- not in DECLARE: an error there is outside of the handler
  RETURN CASE WHEN cardinality(v_parts) = 2 THEN v_parts END;
EXCEPTION WHEN invalid_parameter_value THEN
  RETURN NULL;
END
$fn$;
