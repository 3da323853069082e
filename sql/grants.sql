-- The one privilege matrix. Everything belongs to synchro_owner; PUBLIC has nothing.
DO $do$
DECLARE
  v_object record;
BEGIN
  FOR v_object IN
    SELECT CASE d.classid
             WHEN 'pg_catalog.pg_proc'::regclass THEN
               pg_catalog.format('ALTER ROUTINE %s OWNER TO synchro_owner', d.objid::regprocedure)
             WHEN 'pg_catalog.pg_namespace'::regclass THEN
               pg_catalog.format('ALTER SCHEMA %s OWNER TO synchro_owner', d.objid::regnamespace)
             WHEN 'pg_catalog.pg_type'::regclass THEN
               pg_catalog.format('ALTER TYPE %s OWNER TO synchro_owner', d.objid::regtype)
             ELSE CASE c.relkind
               WHEN 'v' THEN pg_catalog.format('ALTER VIEW %s OWNER TO synchro_owner', d.objid::regclass)
               WHEN 'r' THEN pg_catalog.format('ALTER TABLE %s OWNER TO synchro_owner', d.objid::regclass)
             END
           END AS command
      FROM pg_catalog.pg_depend d
      LEFT JOIN pg_catalog.pg_class c ON d.classid = 'pg_catalog.pg_class'::regclass AND c.oid = d.objid
      LEFT JOIN pg_catalog.pg_type t ON d.classid = 'pg_catalog.pg_type'::regclass AND t.oid = d.objid
     WHERE d.deptype = 'e' AND d.refclassid = 'pg_catalog.pg_extension'::regclass
       AND d.refobjid = (SELECT e.oid FROM pg_catalog.pg_extension e WHERE e.extname = 'synchro')
       AND d.classid IN ('pg_catalog.pg_proc'::regclass, 'pg_catalog.pg_namespace'::regclass, 'pg_catalog.pg_class'::regclass,
                         'pg_catalog.pg_type'::regclass)
       -- From 17 on row types of tables are members too; they follow their tables.
       AND (t.oid IS NULL OR (t.typcategory <> 'A' AND NOT EXISTS (
             SELECT FROM pg_catalog.pg_class r WHERE r.oid = t.typrelid AND r.relkind <> 'c')))
       AND (c.oid IS NULL OR c.relkind IN ('v', 'r'))
  LOOP
    EXECUTE v_object.command;
  END LOOP;
END
$do$;
ALTER SCHEMA synchro OWNER TO synchro_owner;

-- Nor has anybody what the default privileges of whoever installs give away.
DO $do$
DECLARE
  v_role regrole;
BEGIN
  FOR v_role IN
    SELECT DISTINCT x.grantee::regrole FROM (
        SELECT a.grantee FROM pg_catalog.pg_proc o CROSS JOIN LATERAL pg_catalog.aclexplode(o.proacl) a WHERE o.pronamespace = 'synchro'::regnamespace
        UNION ALL SELECT a.grantee FROM pg_catalog.pg_class o CROSS JOIN LATERAL pg_catalog.aclexplode(o.relacl) a WHERE o.relnamespace = 'synchro'::regnamespace
        UNION ALL SELECT a.grantee FROM pg_catalog.pg_type o CROSS JOIN LATERAL pg_catalog.aclexplode(o.typacl) a WHERE o.typnamespace = 'synchro'::regnamespace
        UNION ALL SELECT a.grantee FROM pg_catalog.pg_namespace o CROSS JOIN LATERAL pg_catalog.aclexplode(o.nspacl) a
                   WHERE o.nspname IN ('synchro', 'synchro_data', 'synchro_projection', 'synchro_twin')) x
     WHERE x.grantee NOT IN (0, 'synchro_owner'::regrole)
  LOOP
    EXECUTE pg_catalog.format('REVOKE ALL ON SCHEMA synchro, synchro_data, synchro_projection, synchro_twin FROM %s', v_role);
    EXECUTE pg_catalog.format('REVOKE ALL ON ALL FUNCTIONS IN SCHEMA synchro FROM %s', v_role);
    EXECUTE pg_catalog.format('REVOKE ALL ON ALL TABLES IN SCHEMA synchro FROM %s', v_role);
    EXECUTE pg_catalog.format('REVOKE ALL ON ALL SEQUENCES IN SCHEMA synchro FROM %s', v_role);
    EXECUTE (SELECT pg_catalog.string_agg(pg_catalog.format('REVOKE ALL ON TYPE %s FROM %s', t.oid::regtype, v_role), ';')
               FROM pg_catalog.pg_type t WHERE t.typnamespace = 'synchro'::regnamespace AND t.typcategory <> 'A');
  END LOOP;
END
$do$;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA synchro FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA synchro FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA synchro FROM PUBLIC;
DO $do$
DECLARE
  v_type regtype;
BEGIN
  FOR v_type IN SELECT t.oid FROM pg_catalog.pg_type t
                 WHERE t.typnamespace = 'synchro'::pg_catalog.regnamespace AND t.typcategory <> 'A' LOOP
    EXECUTE pg_catalog.format('REVOKE ALL ON TYPE %s FROM PUBLIC', v_type);
  END LOOP;
END
$do$;
REVOKE ALL ON SCHEMA synchro, synchro_data, synchro_projection, synchro_twin FROM PUBLIC;

GRANT USAGE ON SCHEMA synchro TO synchro_writer, synchro_adapter, synchro_seed, synchro_monitor, synchro_operator, synchro_worker;
GRANT USAGE ON SCHEMA synchro_projection TO synchro_operator;
GRANT USAGE ON TYPE synchro.synchro_row_ref TO synchro_operator;

-- Writers of pushed rows see who pushes.
GRANT EXECUTE ON FUNCTION synchro.synchro_subject(), synchro.synchro_subject(text) TO synchro_writer;

-- The adapter serves clients.
GRANT EXECUTE ON FUNCTION synchro.synchro_connect(text, text, jsonb), synchro.synchro_pull(text, text, jsonb) TO synchro_adapter;
GRANT EXECUTE ON FUNCTION synchro.synchro_rebuild(text, text, jsonb) TO synchro_adapter;
GRANT EXECUTE ON FUNCTION synchro.synchro_push(text, text, jsonb) TO synchro_adapter;
GRANT EXECUTE ON FUNCTION synchro.synchro_health() TO synchro_adapter;

GRANT EXECUTE ON FUNCTION synchro.synchro_health(), synchro.synchro_health_detail() TO synchro_monitor, synchro_operator;

-- Operators register and repair.
GRANT EXECUTE ON FUNCTION
  synchro.synchro_prepare_projection_view(text, text, text[]),
  synchro.synchro_register_table(text, text, text, text, text, text, text, text[], text[], int, text[], text[], text),
  synchro.synchro_unregister_table(text), synchro.synchro_table_id(text),
  synchro.synchro_register_capture_dependency(text, text[], text[]), synchro.synchro_unregister_capture_dependency(text),
  synchro.synchro_register_membership_dependency(text, text, text, text[], int),
  synchro.synchro_unregister_membership_dependency(text, text),
  synchro.synchro_register_shared_scope(text, boolean), synchro.synchro_unregister_shared_scope(text),
  synchro.synchro_grant_user_scope(text, text), synchro.synchro_revoke_user_scope(text, text),
  synchro.synchro_register_assignment_function(text, int), synchro.synchro_unregister_assignment_function(),
  synchro.synchro_retry_capture(), synchro.synchro_withdraw_rules(), synchro.synchro_accept_restore() TO synchro_operator;

-- Operators decide about retention.
GRANT EXECUTE ON FUNCTION synchro.synchro_compact(interval, int), synchro.synchro_expire_client(text, text),
  synchro.synchro_retire_client(text, text), synchro.synchro_rotate_keys(), synchro.synchro_retire_key(text) TO synchro_operator;

-- The worker reads the registry and writes capture state and projections.
GRANT USAGE ON SCHEMA synchro_data TO synchro_worker;
GRANT SELECT ON synchro.relation, synchro.captured_column, synchro.manifest, synchro.manifest_field, synchro.registry_generation,
  synchro.registration, synchro.active_registration, synchro.membership_dependency, synchro.standing_registration, synchro.progress, synchro.quarantine, synchro.scope, synchro.scope_entry,
  synchro.client_materialized TO synchro_worker;
GRANT INSERT, UPDATE, DELETE ON synchro.scope, synchro.scope_entry, synchro.client_materialized,
  synchro.quarantine TO synchro_worker;
GRANT UPDATE ON synchro.progress TO synchro_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON synchro.backfill, synchro.staged_membership TO synchro_worker;
GRANT SELECT ON synchro.declared_scope TO synchro_worker;
GRANT EXECUTE ON FUNCTION synchro._newest_generation(), synchro._changed_rules(bigint, bigint), synchro._built_on_rejected(bigint),
  synchro._reject_generation(bigint, text, int), synchro._emit_switch(bigint), synchro._sweep_relation(oid) TO synchro_worker;
GRANT SELECT, DELETE ON synchro.push_fence TO synchro_worker;
GRANT EXECUTE ON FUNCTION synchro._row_digest(int, bigint, record, text), synchro._key_bytes(text, text), synchro._key_text(text, bytea),
  synchro._stream_identity(), synchro._fence_key(), synchro._ensure_publication() TO synchro_worker;
GRANT EXECUTE ON FUNCTION synchro._evaluate_membership(int, bigint, text[]), synchro._evaluate_impact(bigint, int, int, jsonb[], jsonb[]),
  synchro._drop_expired_rebuilds(int) TO synchro_worker;
GRANT SELECT, INSERT, DELETE ON synchro.compaction TO synchro_worker;
GRANT EXECUTE ON FUNCTION synchro._next(bigint), synchro._expire_clients(timestamptz), synchro._compact_scopes(bigint, int), synchro._tidy(timestamptz, int) TO synchro_worker;
GRANT EXECUTE ON FUNCTION synchro._baseline(int, bigint, name), synchro._drift(), synchro._drop_stages(), synchro._renew_fences(int[]), synchro._needed_columns(synchro.registration, name[]) TO synchro_worker;
GRANT EXECUTE ON FUNCTION synchro._store_rows(int, bigint, smallint, smallint, bytea), synchro._read_rows(int, bigint, smallint, smallint, text[]), synchro._store_scopes(int, bytea),
  synchro._store_entries(bigint, bytea, boolean) TO synchro_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON synchro.capture_recovery TO synchro_worker;
