CREATE FUNCTION synchro._schema_lineage(p_current bigint)
RETURNS TABLE (schema_version bigint, schema_hash text, incompatible boolean) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
#variable_conflict use_column
-- The current manifest and its ancestors, each with whether a Class 4 step is among those that lead from it to the current one. Which scopes
-- the Class 3 steps among them affect, their affected_version says.
BEGIN
  RETURN QUERY WITH RECURSIVE l (schema_version, schema_hash, parent_version, transition_class, incompatible) AS (
  SELECT m.schema_version, m.schema_hash, m.parent_version, m.transition_class, false
    FROM synchro.manifest m WHERE m.schema_version = p_current
  UNION ALL
  SELECT m.schema_version, m.schema_hash, m.parent_version, m.transition_class, l.incompatible OR l.transition_class = 'class_4'
    FROM l JOIN synchro.manifest m ON m.schema_version = l.parent_version
)
SELECT l.schema_version, l.schema_hash, l.incompatible FROM l;
END
$fn$;
