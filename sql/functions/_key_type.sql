CREATE FUNCTION synchro._key_type(p_type oid) RETURNS text LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Portable type of a key column's type, by OID; NULL when it cannot be a key (domains included).
-- The output function of each type reads no setting, and equal text means an equal key.
SELECT CASE
  WHEN p_type IN ('int2'::regtype, 'int4'::regtype) THEN 'int'
  WHEN p_type = 'int8'::regtype THEN 'int64'
  WHEN p_type IN ('text'::regtype, 'varchar'::regtype, 'bpchar'::regtype, 'uuid'::regtype, 'inet'::regtype,
                  'cidr'::regtype, 'macaddr'::regtype, 'macaddr8'::regtype, 'int4range'::regtype, 'int8range'::regtype,
                  'numrange'::regtype, 'int4multirange'::regtype, 'int8multirange'::regtype, 'nummultirange'::regtype)
  THEN 'string'
END
$fn$;
