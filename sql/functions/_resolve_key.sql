CREATE FUNCTION synchro._resolve_key(p_relation oid, p_pk_column text, p_push boolean)
RETURNS smallint LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Checks the primary-key contract of docs/registration.md. Returns the attribute number of the key column.
-- Errors: missing_, nullable_, composite_, partial_primary_key, unsupported_primary_key_type, unsupported_replica_identity.
DECLARE
  v_pk      record;
  v_att     record;
  v_partial boolean;
BEGIN
  SELECT a.attnum, a.attnotnull, a.atttypid, a.attidentity, a.attgenerated,
         coalesce(NOT c.collisdeterministic, false) AS loose INTO v_att
    FROM pg_attribute a LEFT JOIN pg_collation c ON c.oid = a.attcollation
   WHERE a.attrelid = p_relation AND a.attname = p_pk_column AND a.attnum > 0 AND NOT a.attisdropped;
  SELECT k.conkey, k.condeferrable INTO v_pk FROM pg_constraint k WHERE k.conrelid = p_relation AND k.contype = 'p';
  IF v_pk.conkey IS NOT NULL AND cardinality(v_pk.conkey) > 1 THEN
    PERFORM synchro._refuse('composite_primary_key', 'the primary key has more than one column',
                            'make a column of its own the primary key (a uuid, say); the present columns can be UNIQUE instead');
  ELSIF v_att.attnum IS NULL THEN
    PERFORM synchro._refuse('missing_primary_key', format('the relation has no column %I', p_pk_column),
                            'name the column of the primary key, spelled as in the catalog');
  ELSIF v_pk.conkey IS NULL OR v_pk.conkey[1] <> v_att.attnum THEN
    SELECT bool_and(i.indpred IS NOT NULL) INTO v_partial FROM pg_index i
     WHERE i.indrelid = p_relation AND i.indisunique AND i.indnkeyatts = 1 AND i.indkey[0] = v_att.attnum;
    IF v_partial THEN
      PERFORM synchro._refuse('partial_primary_key', 'a partial unique index is not a primary key',
                              format('ALTER TABLE %s ADD PRIMARY KEY (%I)', p_relation::regclass, p_pk_column));
    ELSIF NOT v_att.attnotnull THEN
      PERFORM synchro._refuse('nullable_primary_key', 'the key column is nullable',
                              format('ALTER TABLE %s ADD PRIMARY KEY (%I)', p_relation::regclass, p_pk_column));
    END IF;
    PERFORM synchro._refuse('missing_primary_key', format('column %I is not the primary key of the relation', p_pk_column),
                            'name the column of the primary key; a unique or expression index does not replace one');
  ELSIF v_pk.condeferrable THEN
    PERFORM synchro._refuse('unsupported_replica_identity', 'a deferrable primary key is no replica identity',
                            'declare the primary key NOT DEFERRABLE');
  END IF;
  IF EXISTS (SELECT FROM pg_class c WHERE c.relreplident <> 'd'
               AND (c.oid = p_relation OR c.oid IN (SELECT t.relid FROM pg_partition_tree(p_relation) t))) THEN
    PERFORM synchro._refuse('unsupported_replica_identity', 'the replica identity is not DEFAULT',
                            format('ALTER TABLE %s REPLICA IDENTITY DEFAULT, and for each partition', p_relation::regclass));
  ELSIF synchro._key_type(v_att.atttypid) IS NULL THEN
    PERFORM synchro._refuse('unsupported_primary_key_type', 'the key column has an unsupported type',
                            'use one of the built-in key types listed in docs/registration.md');
  ELSIF v_att.loose THEN
    PERFORM synchro._refuse('unsupported_primary_key_type', 'the key column has a nondeterministic collation',
                            'give the column a deterministic collation, such as "C"');
  ELSIF v_att.attgenerated <> '' THEN
    -- PostgreSQL neither streams a generated column nor, from 18 on, updates a row whose replica identity it is.
    PERFORM synchro._refuse('unsupported_primary_key_type', 'a key computed from other columns cannot be captured',
                            'make a plain column the primary key');
  ELSIF p_push AND v_att.attidentity <> '' THEN
    PERFORM synchro._refuse('unsupported_primary_key_type', 'a database-generated key cannot be pushed',
                            'let clients choose keys (uuid), or register with p_push_policy => ''read_only''');
  END IF;
  RETURN v_att.attnum;
END
$fn$;
