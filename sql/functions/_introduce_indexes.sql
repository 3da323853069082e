CREATE FUNCTION synchro._introduce_indexes(p_rel_no int, p_relation oid, p_columns name[]) RETURNS void LANGUAGE sql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Issues index ids for the relation's plain btree indexes (no expression, no predicate) over synced columns.
INSERT INTO synchro.relation_index (rel_no, index_oid)
SELECT p_rel_no, i.indexrelid
  FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam
 WHERE i.indrelid = p_relation AND i.indisvalid AND m.amname = 'btree' AND NOT i.indisprimary
   AND i.indpred IS NULL AND i.indexprs IS NULL
   AND (SELECT bool_and(a.attname = ANY (p_columns)) FROM unnest(i.indkey::smallint[]) WITH ORDINALITY k(attnum, n)
          JOIN pg_attribute a ON a.attrelid = p_relation AND a.attnum = k.attnum WHERE k.n <= i.indnkeyatts)
ON CONFLICT (index_oid) DO NOTHING
$fn$;
