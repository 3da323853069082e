CREATE FUNCTION synchro._required_columns(p_relation oid, p_columns name[]) RETURNS name[] LANGUAGE sql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Those of the columns that hold no NULL and take none, by the table or by their domain.
WITH RECURSIVE chain AS (
  SELECT a.attname, a.atttypid AS typid,
         a.attnotnull AND NOT EXISTS (SELECT FROM pg_constraint k   -- PostgreSQL 18: NOT NULL that older rows may break
                                       WHERE k.conrelid = a.attrelid AND k.contype = 'n' AND k.conkey = ARRAY[a.attnum] AND NOT k.convalidated) AS required
    FROM pg_attribute a WHERE a.attrelid = p_relation AND a.attname = ANY (p_columns)
  UNION ALL
  SELECT c.attname, t.typbasetype, c.required OR t.typnotnull FROM chain c JOIN pg_type t ON t.oid = c.typid AND t.typtype = 'd'
)
SELECT coalesce(array_agg(DISTINCT c.attname ORDER BY c.attname), '{}') FROM chain c WHERE c.required
$fn$;
