CREATE FUNCTION synchro._resolve_relation(p_name text) RETURNS oid LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- The one relation that a schema-qualified name means; refuses anything that cannot be registered.
-- p_name: schema.relation, identifiers quoted as in SQL. Returns its OID. Takes no lock.
-- Errors: ambiguous_physical_relation, unsupported_relation, not_owner.
DECLARE
  v_parts text[] := synchro._qualified_name(p_name);
  v_rel   record;
BEGIN
  IF v_parts IS NULL THEN
    PERFORM synchro._refuse('ambiguous_physical_relation', 'the relation name is not schema-qualified',
                            'write schema.relation, quoting identifiers as in SQL');
  END IF;
  SELECT c.oid, c.relkind, c.relispartition,
         EXISTS (SELECT FROM pg_class r WHERE r.relpersistence <> 'p'
                    AND (r.oid = c.oid OR r.oid IN (SELECT t.relid FROM pg_partition_tree(c.oid) t))) AS unlogged,
         c.relowner, n.nspname,
         EXISTS (SELECT FROM pg_class r WHERE r.relam <> (SELECT a.oid FROM pg_am a WHERE a.amname = 'heap') AND r.relkind = 'r'
                    AND (r.oid = c.oid OR r.oid IN (SELECT t.relid FROM pg_partition_tree(c.oid) t))) AS not_heap,
         EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = c.oid AND c.relkind = 'r') AS has_children
    INTO v_rel
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE n.nspname = v_parts[1] AND c.relname = v_parts[2];
  IF NOT FOUND THEN
    PERFORM synchro._refuse('ambiguous_physical_relation', 'no such relation',
                            'check schema and spelling: names that are not quoted mean lower case');
  ELSIF v_rel.nspname IN ('pg_catalog', 'information_schema', 'pg_toast') OR v_rel.nspname LIKE 'synchro%' THEN
    PERFORM synchro._refuse('unsupported_relation', 'relations of this schema cannot be registered',
                            'register tables of the application');
  ELSIF v_rel.relkind NOT IN ('r', 'p') THEN
    PERFORM synchro._refuse('unsupported_relation', 'only ordinary and partitioned tables can be registered',
                            'register the tables that hold the rows');
  ELSIF v_rel.unlogged THEN
    PERFORM synchro._refuse('unsupported_relation', 'temporary and unlogged tables leave nothing in the WAL',
                            'ALTER TABLE ... SET LOGGED makes an unlogged table or partition an ordinary one');
  ELSIF v_rel.relispartition THEN
    PERFORM synchro._refuse('unsupported_relation', 'a partition is registered through its root',
                            'register the partitioned table');
  ELSIF v_rel.has_children THEN
    PERFORM synchro._refuse('unsupported_relation', 'tables with inheritance children cannot be registered',
                            'partition the table instead, or end the inheritance: ALTER TABLE ... NO INHERIT');
  ELSIF v_rel.not_heap THEN
    PERFORM synchro._refuse('unsupported_relation', 'only heap tables can be registered', 'ALTER TABLE ... SET ACCESS METHOD heap');
  ELSIF v_rel.relowner = 'synchro_owner'::regrole OR NOT pg_has_role(session_user, v_rel.relowner, 'USAGE') THEN
    PERFORM synchro._refuse('not_owner', 'the session user does not own the relation',
                            'log in as its owner or a member of that role: SET ROLE does not count');
  END IF;
  RETURN v_rel.oid;
END
$fn$;
