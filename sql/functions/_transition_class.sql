CREATE FUNCTION synchro._transition_class(p_old jsonb, p_new jsonb, p_rematerialized uuid[]) RETURNS text LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- The one difference function: class of the step between two manifests' "tables", NULL when they are equal.
-- p_rematerialized: ids of tables and fields whose rows the step had to materialize.
-- Class 4: a table, field, key or type that clients know is gone or means something else. Class 3: new content for rows
-- that clients already may hold, a field that is not null any more where they may hold a NULL, or other rules of composition or deletion.
-- Class 2: everything else.
WITH o AS (SELECT t->>'table_id' AS id, t FROM jsonb_array_elements(p_old) t),
     n AS (SELECT t->>'table_id' AS id, t FROM jsonb_array_elements(p_new) t),
     f AS (
  SELECT o.id AS table_id, x->>'field_id' AS id, x AS old_field, y AS new_field
    FROM o JOIN n ON n.id = o.id
    CROSS JOIN LATERAL (SELECT * FROM jsonb_array_elements(o.t->'fields') x
                          FULL JOIN jsonb_array_elements(n.t->'fields') y ON y->>'field_id' = x->>'field_id') z(x, y)
)
SELECT CASE
  WHEN p_old = p_new THEN NULL
  WHEN EXISTS (SELECT FROM o WHERE o.id NOT IN (SELECT n.id FROM n))
    OR EXISTS (SELECT FROM o JOIN n ON n.id = o.id WHERE o.t->'primary_key_field_id' <> n.t->'primary_key_field_id')
    OR EXISTS (SELECT FROM f WHERE f.old_field IS NOT NULL
                 AND (f.new_field IS NULL OR f.new_field->'type' <> f.old_field->'type' OR f.new_field->'name' <> f.old_field->'name'))
    THEN 'class_4'
  WHEN EXISTS (SELECT FROM n WHERE n.id NOT IN (SELECT o.id FROM o) AND n.id::uuid = ANY (p_rematerialized))
    OR EXISTS (SELECT FROM o JOIN n ON n.id = o.id WHERE o.t->'composition' <> n.t->'composition'
                  OR o.t#>'{lifecycle,deleted_at_field_id}' <> n.t#>'{lifecycle,deleted_at_field_id}')
    OR EXISTS (SELECT FROM f WHERE f.old_field IS NULL
                 AND ((f.new_field->>'field_id')::uuid = ANY (p_rematerialized) OR NOT (f.new_field->>'nullable')::boolean))
    OR EXISTS (SELECT FROM f WHERE (f.old_field->>'nullable')::boolean AND NOT (f.new_field->>'nullable')::boolean)
    THEN 'class_3'
  ELSE 'class_2'
END
$fn$;
