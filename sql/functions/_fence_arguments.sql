CREATE FUNCTION synchro._fence_arguments(p_rel_no int) RETURNS TABLE (kind "char", sync_attnums smallint[], text_attnums smallint[], required_attnums smallint[]) LANGUAGE sql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- What the fence trigger of a relation has to be told now: what is written must fit every generation that it may be materialized with. So writers are held to all of these at once: a column
-- is synced, or never NULL, where one of them says so, and text where all do.
WITH s AS (SELECT r.sync_columns, r.text_columns, r.required_columns FROM synchro.standing_registration r 
            WHERE r.rel_no = p_rel_no AND r.kind = 'synced' AND r.generation >= synchro._capturing_generation()),
     c AS (SELECT k.attnum, k.column_name FROM synchro.captured_column k
            WHERE k.rel_no = p_rel_no AND EXISTS (SELECT FROM s WHERE k.column_name = ANY (s.sync_columns)))
SELECT CASE WHEN EXISTS (SELECT FROM s) THEN 's' ELSE 'd' END::"char",
       (SELECT coalesce(array_agg(c.attnum ORDER BY c.attnum), '{}') FROM c),
       (SELECT coalesce(array_agg(c.attnum ORDER BY c.attnum), '{}') FROM c
         WHERE NOT EXISTS (SELECT FROM s WHERE c.column_name = ANY (s.sync_columns) AND c.column_name <> ALL (s.text_columns))),
       (SELECT coalesce(array_agg(c.attnum ORDER BY c.attnum), '{}') FROM c WHERE EXISTS (SELECT FROM s WHERE c.column_name = ANY (s.required_columns)))
$fn$;
