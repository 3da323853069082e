CREATE FUNCTION synchro._schema_lineage(p_current bigint)
RETURNS TABLE (schema_version bigint, schema_hash text, incompatible boolean, class_3 bigint[]) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
#variable_conflict use_column
-- The current manifest and its ancestors, each with the steps that lead from it to the current one: whether a Class 4 step is
-- among them, and which versions are Class 3 steps.
BEGIN
  RETURN QUERY WITH RECURSIVE l (schema_version, schema_hash, parent_version, transition_class, incompatible, class_3) AS (
  SELECT m.schema_version, m.schema_hash, m.parent_version, m.transition_class, false, '{}'::bigint[]
    FROM synchro.manifest m WHERE m.schema_version = p_current
  UNION ALL
  SELECT m.schema_version, m.schema_hash, m.parent_version, m.transition_class,
         l.incompatible OR l.transition_class = 'class_4',
         CASE l.transition_class WHEN 'class_3' THEN l.class_3 || l.schema_version ELSE l.class_3 END
    FROM l JOIN synchro.manifest m ON m.schema_version = l.parent_version
)
SELECT l.schema_version, l.schema_hash, l.incompatible, l.class_3 FROM l;
END
$fn$;
