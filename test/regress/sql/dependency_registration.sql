-- Dependencies: registered with their tables in one transaction, in any order; what they make, and what repeating, changing and removing them does.
SET client_min_messages = warning;
\set VERBOSITY terse
CREATE SCHEMA dep;
GRANT USAGE ON SCHEMA dep TO synchro_owner, synchro_worker;
CREATE TABLE dep.member (id bigint PRIMARY KEY, team int, person text, rank xml);       -- a type without a portable form: no client gets it
CREATE TABLE dep.task (id int PRIMARY KEY, team int, parent int, title text);
GRANT SELECT ON dep.member, dep.task TO synchro_owner, synchro_worker;
INSERT INTO dep.member VALUES (1, 10, 'ann', '1'), (2, 10, 'bob', '2');
INSERT INTO dep.task VALUES (1, 10, NULL, 'one');
SELECT max(generation) AS newest FROM synchro.registry_generation \gset
CREATE VIEW dep.registered AS
  SELECT g.generation - :newest AS generation, l.physical_relation, r.kind, r.key_column, r.pk_type, r.composition, r.push_policy, r.captured_columns,
         l.table_id IS NOT NULL AS table_id, r.membership_twin IS NOT NULL AS twin
    FROM synchro.registry_generation g JOIN synchro.registration r USING (generation) JOIN synchro.relation l USING (rel_no)
   WHERE g.generation = (SELECT max(generation) FROM synchro.registry_generation) AND l.physical_schema = 'dep' ORDER BY l.physical_relation;
CREATE VIEW dep.dependencies AS
  SELECT d.generation - :newest AS generation, t.physical_relation AS target, s.physical_relation AS source, d.impact_function::regproc, d.source_attnums,
         d.max_impact_rows, d.impact_twin IS NOT NULL AS twin, d.dependency_id
    FROM synchro.membership_dependency d JOIN synchro.relation t ON t.rel_no = d.target_rel_no JOIN synchro.relation s ON s.rel_no = d.source_rel_no
   WHERE d.generation = (SELECT max(generation) FROM synchro.registry_generation) AND t.physical_schema = 'dep' ORDER BY 2, 3;

-- One migration: views, functions with the target's id as a literal, and registrations, the dependent ones first.
CREATE FUNCTION dep.migrate() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM synchro.synchro_prepare_projection_view('dep.member', 'dep_member', '{id,team,person}');
  PERFORM synchro.synchro_prepare_projection_view('dep.task', 'dep_task', '{id,team,parent}');
  CREATE FUNCTION dep.task_scopes(p_row_key int) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro BEGIN ATOMIC
    SELECT 'user:' || m.person FROM synchro_projection.dep_task t JOIN synchro_projection.dep_member m ON m.team = t.team WHERE t.id = p_row_key;
  END;
  EXECUTE format($f$CREATE FUNCTION dep.member_impact(p_old_row jsonb, p_new_row jsonb) RETURNS SETOF synchro.synchro_row_ref
    LANGUAGE sql STABLE SET search_path = pg_catalog, synchro BEGIN ATOMIC
    SELECT %L, 'int', t.id::text FROM synchro_projection.dep_task t WHERE t.team IN ((p_old_row->>'team')::int, (p_new_row->>'team')::int);
  END$f$, synchro.synchro_table_id('dep.task'));
  REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA dep FROM PUBLIC;
  GRANT EXECUTE ON FUNCTION dep.task_scopes, dep.member_impact TO synchro_worker;
  PERFORM synchro.synchro_register_membership_dependency('dep.member', 'dep.task', 'dep.member_impact', '{team,person}');
  PERFORM synchro.synchro_register_table('dep.task', 'dep.task_scopes', 'multi_scope', p_push_policy => 'read_only');
  PERFORM synchro.synchro_register_capture_dependency('dep.member', '{id}', '{person,team,rank}');
END
$$;
SELECT dep.migrate();
SELECT * FROM dep.registered;
SELECT generation, target, source, impact_function, source_attnums, max_impact_rows, twin FROM dep.dependencies;
-- Only the synced table is in the manifest; both are published and have triggers, and rows in their projections.
SELECT array_agg(t->>'name') FROM synchro.manifest m, jsonb_array_elements(m.body::jsonb->'tables') t
 WHERE m.schema_version = (SELECT max(schema_version) FROM synchro.manifest);
SELECT tablename FROM pg_publication_tables WHERE schemaname = 'dep' ORDER BY 1;
SELECT tgrelid::regclass, tgname, tgenabled FROM pg_trigger WHERE tgrelid IN ('dep.member'::regclass, 'dep.task'::regclass) AND NOT tgisinternal ORDER BY tgrelid::regclass::text, 2;
SELECT id, team, person FROM synchro_projection.dep_member ORDER BY 1;
SELECT count(*) FROM synchro_projection.dep_task;
-- Fences of a dependency have kind d and no table id, and none of its values needs a portable form.
SELECT t.tgrelid::regclass, a[2] AS kind, a[4] = '' AS no_table_id, a[6] AS key, a[7] AS synced
  FROM pg_trigger t, string_to_array(encode(t.tgargs, 'escape'), '\000') a WHERE t.tgname = 'synchro_fence' AND t.tgrelid IN ('dep.member'::regclass, 'dep.task'::regclass)
 ORDER BY t.tgrelid::regclass::text;
INSERT INTO dep.member VALUES (3, 11, 'cy', '3');

-- The same again: nothing at all.
SELECT ctid, xmin FROM synchro.registry_generation ORDER BY generation DESC LIMIT 1 \gset before_
SELECT synchro.synchro_register_membership_dependency('dep.member', 'dep.task', 'dep.member_impact', '{person,team}', 1000),
       synchro.synchro_register_table('dep.task', 'dep.task_scopes', 'multi_scope', p_push_policy => 'read_only'),
       synchro.synchro_register_capture_dependency('dep.member', '{id}', '{rank,team,person,id}');
SELECT ctid = :'before_ctid' AND xmin = :'before_xmin' AS untouched, (SELECT max(generation) FROM synchro.registry_generation) - :newest AS made
  FROM synchro.registry_generation ORDER BY generation DESC LIMIT 1;

-- A changed bound, function or column list is a new generation of the same dependency, under the same manifest.
SELECT dependency_id FROM dep.dependencies \gset
SELECT max(schema_version) AS version FROM synchro.manifest \gset
SELECT synchro.synchro_register_membership_dependency('dep.member', 'dep.task', 'dep.member_impact', '{person,team}', 7);
SELECT generation, source_attnums, max_impact_rows, twin, dependency_id = :'dependency_id' AS same FROM dep.dependencies;
SELECT synchro.synchro_register_membership_dependency('dep.member', 'dep.task', 'dep.member_impact', '{person,team,rank}', 7);
SELECT format('CREATE OR REPLACE FUNCTION dep.member_impact(p_old_row jsonb, p_new_row jsonb) RETURNS SETOF synchro.synchro_row_ref
    LANGUAGE sql STABLE SET search_path = pg_catalog, synchro BEGIN ATOMIC
    SELECT %L, ''int'', t.id::text FROM synchro_projection.dep_task t WHERE t.team = (p_old_row->>''team'')::int
     UNION SELECT %L, ''int'', t.id::text FROM synchro_projection.dep_task t WHERE t.team = (p_new_row->>''team'')::int; END',
    synchro.synchro_table_id('dep.task'), synchro.synchro_table_id('dep.task')) AS create_impact \gset
:create_impact;
SELECT synchro.synchro_register_membership_dependency('dep.member', 'dep.task', 'dep.member_impact', '{person,team,rank}', 7);
SELECT generation, source_attnums, max_impact_rows, twin, dependency_id = :'dependency_id' AS same FROM dep.dependencies;
SELECT max(schema_version) = :version AS same_manifest FROM synchro.manifest;
SELECT count(*) AS twins FROM pg_proc WHERE pronamespace = 'synchro_twin'::regnamespace AND proname LIKE 'i\_%';

UPDATE synchro.progress SET registry_generation = (SELECT max(generation) FROM synchro.registry_generation);

-- What is depended on does not go alone; together with its dependency, or the target, it does.
SELECT synchro.synchro_unregister_capture_dependency('dep.member');
SELECT synchro.synchro_unregister_membership_dependency('dep.member', 'dep.task');
SELECT synchro.synchro_unregister_table('dep.member');
SELECT synchro.synchro_unregister_capture_dependency('dep.task');
SELECT synchro.synchro_unregister_membership_dependency('dep.task', 'dep.member');
SELECT synchro.synchro_unregister_capture_dependency('dep.none');
BEGIN;
SELECT synchro.synchro_unregister_capture_dependency('dep.member');
SELECT synchro.synchro_unregister_table('dep.task');
COMMIT;
SELECT count(*) AS registered, (SELECT count(*) FROM dep.dependencies) AS dependencies FROM dep.registered;
SELECT count(*) AS published FROM pg_publication_tables WHERE schemaname = 'dep';
-- They can come back before the worker has let go of them: their rows are read anew, beside what it still has.
BEGIN;
SELECT synchro.synchro_register_capture_dependency('dep.member', '{id}', '{team}');
SET CONSTRAINTS ALL IMMEDIATE;
SELECT g.staged, r.since = g.generation AS read_anew, to_regclass(format('synchro_data.s_%s_%s', r.rel_no, g.generation)) IS NOT NULL AS beside
  FROM synchro.registry_generation g JOIN synchro.registration r USING (generation) JOIN synchro.relation l USING (rel_no)
 WHERE g.xid = pg_current_xact_id() AND l.relation_oid = 'dep.member'::regclass;
ROLLBACK;
UPDATE synchro.progress SET registry_generation = (SELECT max(generation) FROM synchro.registry_generation), schema_version = (SELECT max(schema_version) FROM synchro.manifest);
-- A table that was synced can be a dependency now.
BEGIN;
SELECT synchro.synchro_register_capture_dependency('dep.task', '{id}', '{team}');
SELECT kind, sync_columns FROM synchro.registration JOIN synchro.relation USING (rel_no) WHERE relation_oid = 'dep.task'::regclass ORDER BY generation DESC LIMIT 1;
ROLLBACK;

-- Rows depend on their siblings: dependency and target are the same relation, which needs no capture dependency.
CREATE FUNCTION dep.tree_scopes(p_row_key int) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro BEGIN ATOMIC
  SELECT 'team:' || coalesce(p.team, t.team) FROM synchro_projection.dep_task t LEFT JOIN synchro_projection.dep_task p ON p.id = t.parent WHERE t.id = p_row_key;
END;
SELECT format('CREATE FUNCTION dep.tree_impact(p_old_row jsonb, p_new_row jsonb) RETURNS SETOF synchro.synchro_row_ref LANGUAGE sql STABLE
    SET search_path = pg_catalog, synchro BEGIN ATOMIC SELECT %L, ''int'', t.id::text FROM synchro_projection.dep_task t
    WHERE t.parent IN ((p_old_row->>''id'')::int, (p_new_row->>''id'')::int); END', synchro.synchro_table_id('dep.task')) AS create_impact \gset
:create_impact;
REVOKE EXECUTE ON FUNCTION dep.tree_scopes, dep.tree_impact FROM PUBLIC;
GRANT EXECUTE ON FUNCTION dep.tree_scopes, dep.tree_impact TO synchro_worker;
BEGIN;
SELECT synchro.synchro_register_table('dep.task', 'dep.tree_scopes', p_push_policy => 'read_only');
SELECT synchro.synchro_register_membership_dependency('dep.task', 'dep.task', 'dep.tree_impact', '{team}', 100);
COMMIT;
SELECT target, source, source_attnums, max_impact_rows FROM dep.dependencies;

-- A registration that is rolled back leaves nothing.
BEGIN;
SELECT synchro.synchro_unregister_table('dep.task');
ROLLBACK;
SELECT target FROM dep.dependencies;

SELECT synchro.synchro_unregister_table('dep.task');
UPDATE synchro.progress SET registry_generation = (SELECT max(generation) FROM synchro.registry_generation), schema_version = (SELECT max(schema_version) FROM synchro.manifest);
DROP SCHEMA dep CASCADE;
