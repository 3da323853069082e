CREATE FUNCTION synchro._may_read(p_relation oid) RETURNS boolean LANGUAGE c STABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'synchro_may_read';
COMMENT ON FUNCTION synchro._may_read(oid) IS
  'Gate of a projection view: true when the reading role may read the source relation, else an error (42501).';
