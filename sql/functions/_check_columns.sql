CREATE FUNCTION synchro._check_columns(p_relation oid, p_columns text[]) RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Every name must be a column of the relation, once. Errors: 22023.
DECLARE
  v_unknown text;
BEGIN
  IF p_columns IS NULL OR array_ndims(p_columns) > 1
     OR EXISTS (SELECT FROM unnest(p_columns) c GROUP BY c HAVING count(*) > 1 OR c IS NULL) THEN
    RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'a column list names each column once',
      HINT = 'an array of column names, spelled as in the catalog; an empty one is ''{}''';
  END IF;
  SELECT c INTO v_unknown FROM unnest(p_columns) WITH ORDINALITY u (c, ord)
   WHERE NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = p_relation AND a.attname = c AND a.attnum > 0 AND NOT a.attisdropped)
   ORDER BY ord LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = format('the relation has no column %I', v_unknown),
      HINT = 'column names are spelled as in the catalog, without quotes';
  END IF;
END
$fn$;
