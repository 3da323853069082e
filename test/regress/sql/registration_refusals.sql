-- Every refusal of a registration: its SQLSTATE, reason and hint, and that nothing of it stays.
CREATE SCHEMA refusals;
SET client_min_messages = warning;
\pset format unaligned

-- Runs a registration to its completion and undoes it; shows how it ended.
CREATE FUNCTION refusals.try(p_sql text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_detail text;
  v_hint   text;
BEGIN
  EXECUTE p_sql;
  SET CONSTRAINTS ALL IMMEDIATE;
  RAISE EXCEPTION USING ERRCODE = 'OK000';
EXCEPTION
  WHEN SQLSTATE 'OK000' THEN
    RETURN 'accepted';
  WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS v_detail = PG_EXCEPTION_DETAIL, v_hint = PG_EXCEPTION_HINT;
    RETURN SQLSTATE || ' ' || CASE WHEN v_detail LIKE '{%' THEN v_detail::json#>>'{error,code}' || ' ' || (v_detail::json#>>'{error,reason}') || ': ' ELSE '' END
           || SQLERRM || ' | ' || coalesce(nullif(v_hint, ''), 'NO HINT');
END
$$;
-- Registers with the membership function that any key type shares.
CREATE FUNCTION refusals.register(p_table text, p_more text DEFAULT '') RETURNS text LANGUAGE sql AS $$
  SELECT refusals.try(format('SELECT synchro.synchro_register_table(%L, ''refusals.scopes'' %s)', p_table, p_more))
$$;
DO $$
DECLARE
  t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['uuid', 'int', 'bigint', 'text', 'smallint', 'varchar', 'inet', 'int4range'] LOOP
    EXECUTE format('CREATE FUNCTION refusals.scopes(p_row_key %s) RETURNS SETOF text LANGUAGE sql STABLE
      SET search_path = pg_catalog, synchro BEGIN ATOMIC SELECT ''shared:refusals''; END', t);
    EXECUTE format('REVOKE EXECUTE ON FUNCTION refusals.scopes(%s) FROM PUBLIC', t);
    EXECUTE format('GRANT EXECUTE ON FUNCTION refusals.scopes(%s) TO synchro_worker', t);
  END LOOP;
END
$$;
-- A table as it should be: what each test changes is its only fault.
CREATE FUNCTION refusals.make(p_columns text, p_name text DEFAULT 't') RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('DROP TABLE IF EXISTS refusals.%I CASCADE', p_name);
  EXECUTE format('CREATE TABLE refusals.%I (%s)', p_name, p_columns);
  EXECUTE format('GRANT SELECT ON refusals.%I TO synchro_owner, synchro_worker', p_name);
  EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON refusals.%I TO synchro_writer', p_name);
  EXECUTE format('ALTER TABLE refusals.%I ENABLE ROW LEVEL SECURITY', p_name);
  EXECUTE format('CREATE POLICY push ON refusals.%I TO synchro_writer USING (true)', p_name);
END
$$;
GRANT USAGE ON SCHEMA refusals TO synchro_owner, synchro_worker, synchro_writer;
CREATE TABLE refusals.before AS
  SELECT (SELECT count(*) FROM synchro.registry_generation) AS generations, (SELECT count(*) FROM synchro.manifest) AS manifests,
         (SELECT count(*) FROM pg_publication_rel) AS published;

-- The table as it should be.
SELECT refusals.make('id uuid PRIMARY KEY, body text');
SELECT refusals.register('refusals.t');

-- A dropped column has no type, and is nobody's business.
SELECT refusals.make('id uuid PRIMARY KEY, gone int, body text');
ALTER TABLE refusals.t DROP gone;
SELECT refusals.register('refusals.t'), synchro._portable_type(0, false) IS NULL AS no_type;

-- Names and kinds of relations.
SELECT refusals.register('t');
SELECT refusals.register('db.refusals.t');
SELECT refusals.register('refusals."t');
SELECT refusals.register('refusals.nothing');
SELECT refusals.register('pg_catalog.pg_class'), refusals.register('information_schema.sql_parts'), refusals.register('synchro.manifest');
CREATE VIEW refusals.v AS SELECT * FROM refusals.t;
CREATE MATERIALIZED VIEW refusals.m AS SELECT * FROM refusals.t;
CREATE UNLOGGED TABLE refusals.u (id uuid PRIMARY KEY);
CREATE TABLE refusals.parent (id uuid PRIMARY KEY);
CREATE TABLE refusals.child () INHERITS (refusals.parent);
SELECT refusals.register('refusals.v'), refusals.register('refusals.m'), refusals.register('refusals.u'), refusals.register('refusals.parent');
CREATE TABLE refusals.root (id uuid PRIMARY KEY, body text) PARTITION BY HASH (id);
CREATE TABLE refusals.leaf PARTITION OF refusals.root FOR VALUES WITH (MODULUS 1, REMAINDER 0);
GRANT SELECT ON refusals.root TO synchro_owner, synchro_worker;
CREATE ACCESS METHOD refusals_heap TYPE TABLE HANDLER heap_tableam_handler;
CREATE TABLE refusals.strange (id uuid PRIMARY KEY) USING refusals_heap;
SELECT refusals.register('refusals.strange');
SELECT refusals.register('refusals.leaf'), refusals.register('refusals.root', ', p_push_policy => ''read_only''');

-- Keys.
SELECT refusals.make('id uuid, body text');
SELECT refusals.register('refusals.t') AS nullable;
SELECT refusals.make('id uuid NOT NULL, body text');
SELECT refusals.register('refusals.t') AS none;
CREATE UNIQUE INDEX ON refusals.t (id);
SELECT refusals.register('refusals.t') AS unique_index;
SELECT refusals.make('id uuid NOT NULL, body text');
CREATE UNIQUE INDEX ON refusals.t (id) WHERE body IS NOT NULL;
SELECT refusals.register('refusals.t') AS partial;
SELECT refusals.make('id text NOT NULL, body text');
CREATE UNIQUE INDEX ON refusals.t (lower(id));
SELECT refusals.register('refusals.t') AS expression;
SELECT refusals.make('id uuid, body text, PRIMARY KEY (id, body)');
SELECT refusals.register('refusals.t') AS composite;
SELECT refusals.make('id uuid PRIMARY KEY DEFERRABLE, body text');
SELECT refusals.register('refusals.t') AS is_deferrable;
SELECT refusals.make('id uuid PRIMARY KEY, other uuid NOT NULL UNIQUE');
SELECT refusals.register('refusals.t', ', p_pk_column => ''other''') AS other_column,
       refusals.register('refusals.t', ', p_pk_column => ''nothing''') AS no_column;
CREATE DOMAIN refusals.uuid_domain AS uuid;
CREATE TYPE refusals.uuid AS ENUM ('a');
SELECT refusals.make('id refusals.uuid_domain PRIMARY KEY');
SELECT refusals.register('refusals.t') AS domain_key;
SELECT refusals.make('id refusals.uuid PRIMARY KEY');
SELECT refusals.register('refusals.t') AS named_uuid;
SELECT refusals.make('id timestamptz PRIMARY KEY');
SELECT refusals.register('refusals.t') AS timestamp_key;
SELECT refusals.make('id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY');
SELECT refusals.register('refusals.t') AS identity_pushed, refusals.register('refusals.t', ', p_push_policy => ''read_only''') AS identity_read_only;
SELECT refusals.make('n int, id int GENERATED ALWAYS AS (n * 2) STORED PRIMARY KEY');
SELECT refusals.register('refusals.t') AS generated_pushed, refusals.register('refusals.t', ', p_push_policy => ''read_only''') AS generated_read_only;
CREATE COLLATION refusals.loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
SELECT refusals.make('id text COLLATE refusals.loose PRIMARY KEY');
SELECT refusals.register('refusals.t') AS nondeterministic;

-- Replica identity.
SELECT refusals.make('id uuid PRIMARY KEY, body text NOT NULL UNIQUE');
ALTER TABLE refusals.t REPLICA IDENTITY FULL;
SELECT refusals.register('refusals.t');
ALTER TABLE refusals.t REPLICA IDENTITY NOTHING;
SELECT refusals.register('refusals.t');
ALTER TABLE refusals.t REPLICA IDENTITY USING INDEX t_body_key;
SELECT refusals.register('refusals.t');
ALTER TABLE refusals.t REPLICA IDENTITY DEFAULT;
SELECT refusals.register('refusals.t');

-- Words, bounds and column lists.
SELECT refusals.register('refusals.t', ', p_composition => ''some''') AS composition,
       refusals.register('refusals.t', ', p_push_policy => ''maybe''') AS push_policy;
SELECT n, refusals.register('refusals.t', format(', p_max_scope_fanout => %s', n)) FROM unnest('{0,-1,1,10000,10001}'::int[]) n;
SELECT refusals.register('refusals.t', ', p_max_scope_fanout => NULL');
SELECT refusals.register('refusals.t', ', p_affected_scopes => ''{a}''') AS affected_scopes;
SELECT refusals.register('refusals.t', ', p_exclude_columns => ''{nothing}''') AS unknown_column,
       refusals.register('refusals.t', ', p_exclude_columns => ''{id}''') AS key_excluded,
       refusals.register('refusals.t', ', p_sync_columns => ''{body}''') AS key_not_synced,
       refusals.register('refusals.t', ', p_sync_columns => ''{id,body}'', p_exclude_columns => ''{body}''') AS both_lists,
       refusals.register('refusals.t', ', p_sync_columns => ''{id,id}''') AS twice,
       refusals.register('refusals.t', ', p_exclude_columns => ''{body}'', p_text_columns => ''{body}''') AS text_not_synced,
       refusals.register('refusals.t', ', p_text_columns => ''{id}''') AS text_key,
       refusals.register('refusals.t', ', p_deleted_at_col => ''body''') AS deletion_not_null;

-- Types and values.
SELECT refusals.make('id uuid PRIMARY KEY, price money');
SELECT refusals.register('refusals.t') AS money, refusals.register('refusals.t', ', p_exclude_columns => ''{price}''') AS money_excluded;
SELECT refusals.make('id uuid PRIMARY KEY, at timestamptz, n float8');
INSERT INTO refusals.t VALUES (gen_random_uuid(), 'infinity', 1), (gen_random_uuid(), '-infinity', 2), (gen_random_uuid(), 'now', 3);
SELECT refusals.register('refusals.t') AS infinity, refusals.register('refusals.t', ', p_text_columns => ''{at}''') AS infinity_as_text;

-- Grants and policies, each missing on its own.
SELECT refusals.make('id uuid PRIMARY KEY, body text');
CREATE FUNCTION refusals.without(p_sql text, p_more text DEFAULT '') RETURNS text LANGUAGE sql AS $$
  SELECT refusals.try(format('%s; SELECT synchro.synchro_register_table(''refusals.t'', ''refusals.scopes'' %s)', p_sql, p_more))
$$;
SELECT r, p, refusals.without(format('REVOKE %s ON refusals.t FROM %s', p, r)),
       refusals.without(format('REVOKE %s ON refusals.t FROM %s', p, r), ', p_push_policy => ''read_only''') AS read_only
  FROM (VALUES ('synchro_owner', 'SELECT'), ('synchro_worker', 'SELECT'), ('synchro_writer', 'SELECT'), ('synchro_writer', 'INSERT'),
               ('synchro_writer', 'UPDATE'), ('synchro_writer', 'DELETE')) m(r, p);
SELECT r, refusals.without(format('REVOKE USAGE ON SCHEMA refusals FROM %s', r)) FROM unnest('{synchro_owner,synchro_worker,synchro_writer}'::text[]) r;
SELECT refusals.without('ALTER TABLE refusals.t DISABLE ROW LEVEL SECURITY') AS pushed,
       refusals.without('ALTER TABLE refusals.t DISABLE ROW LEVEL SECURITY', ', p_push_policy => ''read_only''') AS read_only;
SELECT refusals.without('DROP POLICY push ON refusals.t') AS no_policy,
       refusals.without('DROP POLICY push ON refusals.t; CREATE POLICY push ON refusals.t FOR SELECT TO synchro_writer USING (true)') AS only_reads,
       refusals.without('DROP POLICY push ON refusals.t; CREATE POLICY push ON refusals.t TO synchro_adapter USING (true)') AS other_role;

-- Ownership: the session user must own the relation.
CREATE ROLE refusals_login LOGIN;
GRANT synchro_operator TO refusals_login;
GRANT ALL ON SCHEMA refusals TO refusals_login;
SET SESSION AUTHORIZATION refusals_login;
DO $$ BEGIN PERFORM synchro.synchro_register_table('refusals.t', 'refusals.scopes'); EXCEPTION WHEN SQLSTATE 'SY111' THEN RAISE WARNING 'not owner'; END $$;
DO $$ BEGIN PERFORM synchro.synchro_prepare_projection_view('refusals.t', 't', '{id}'); EXCEPTION WHEN SQLSTATE 'SY111' THEN RAISE WARNING 'not owner'; END $$;
DO $$ BEGIN PERFORM synchro.synchro_unregister_table('refusals.t'); EXCEPTION WHEN SQLSTATE 'SY111' THEN RAISE WARNING 'not owner'; END $$;
RESET SESSION AUTHORIZATION;

-- Isolation level, and unregistering what is not registered.
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT refusals.register('refusals.t');
ROLLBACK;
SELECT refusals.try('SELECT synchro.synchro_unregister_table(''refusals.t'')');

-- Nothing of all this stayed.
SELECT b.generations = (SELECT count(*) FROM synchro.registry_generation) AS generations, b.manifests = (SELECT count(*) FROM synchro.manifest) AS manifests,
       b.published = (SELECT count(*) FROM pg_publication_rel) AS published,
       NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = 'refusals.t'::regclass AND tgname LIKE 'synchro%') AS no_trigger
  FROM refusals.before b;
DROP SCHEMA refusals CASCADE;
DROP ACCESS METHOD refusals_heap;
DROP OWNED BY refusals_login;
DROP ROLE refusals_login;
