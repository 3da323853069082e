-- Registering a registered table again: what is a changed rule, what waits, what is refused.
SET client_min_messages = warning;
\set VERBOSITY terse
CREATE SCHEMA rul;
GRANT USAGE ON SCHEMA rul TO synchro_owner, synchro_worker, synchro_writer;
CREATE TABLE rul.note (id int PRIMARY KEY, owner text, body text, deleted_at timestamptz);
CREATE TABLE rul.more (id int PRIMARY KEY, owner text);
GRANT SELECT ON rul.note, rul.more TO synchro_owner, synchro_worker;
SELECT synchro.synchro_prepare_projection_view('rul.note', 'rul_note', '{id,owner}') \g /dev/null
CREATE FUNCTION rul.one(p_row_key int) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
BEGIN ATOMIC SELECT 'user:' || n.owner FROM synchro_projection.rul_note n WHERE n.id = p_row_key AND n.owner IS NOT NULL; END;
CREATE FUNCTION rul.two(p_row_key int) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro BEGIN ATOMIC SELECT 'all'; END;
CREATE FUNCTION rul.volatile(p_row_key int) RETURNS SETOF text LANGUAGE sql VOLATILE SET search_path = pg_catalog, synchro BEGIN ATOMIC SELECT 'all'; END;
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA rul FROM PUBLIC;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA rul TO synchro_worker;
SELECT max(generation) AS newest FROM synchro.registry_generation \gset
CREATE VIEW rul.made AS
  SELECT g.generation - :newest AS generation, g.base - :newest AS base, g.staged, g.schema_version - min(g.schema_version) OVER () AS version,
         (SELECT string_agg(concat_ws(' ', r.membership_function::regproc, r.composition, r.max_scope_fanout, r.push_policy, r.membership_twin IS NOT NULL, r.twin_hash IS NOT NULL), ', ' ORDER BY l.physical_relation)
            FROM synchro.registration r JOIN synchro.relation l USING (rel_no) WHERE r.generation = g.generation AND l.physical_schema = 'rul') AS rules,
         (SELECT array_agg(d.scope_id ORDER BY d.scope_id) FROM synchro.declared_scope d WHERE d.generation = g.generation) AS declared
    FROM synchro.registry_generation g WHERE g.generation > :newest ORDER BY g.generation;
-- What the worker does, without its rows.
CREATE PROCEDURE rul.activate() LANGUAGE sql BEGIN ATOMIC
  UPDATE synchro.progress SET registry_generation = g.generation, schema_version = g.schema_version
    FROM synchro.registry_generation g WHERE g.generation = synchro._newest_generation(); END;
CREATE FUNCTION rul.register(p_function text, p_composition text DEFAULT 'single_scope', p_fanout int DEFAULT 8, p_affected text[] DEFAULT '{}', p_policy text DEFAULT 'read_only')
RETURNS void LANGUAGE sql AS $$ SELECT synchro.synchro_register_table('rul.note', p_function, p_composition, p_max_scope_fanout => p_fanout, p_affected_scopes => p_affected, p_push_policy => p_policy) $$;

-- A new table needs no staging, and has no scopes to list.
SELECT rul.register('rul.one', p_affected => '{all}');
SELECT rul.register('rul.one');
CALL rul.activate();
-- The same again changes nothing; a list without a changed rule is an error.
SELECT rul.register('rul.one');
SELECT rul.register('rul.one', p_affected => '{all}');
SELECT rul.register('rul.two', p_affected => NULL);
SELECT rul.register('rul.two', p_affected => '{all,NULL}');
SELECT rul.register('rul.two', p_affected => '{" "}');
SELECT rul.register('rul.one', p_fanout => 0);
SELECT rul.register('rul.volatile');
SELECT rul.register('rul.none');
SELECT * FROM rul.made;
-- The push policy is no rule.
ALTER TABLE rul.note ENABLE ROW LEVEL SECURITY;
CREATE POLICY push ON rul.note TO synchro_writer USING (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON rul.note TO synchro_writer;
SELECT rul.register('rul.one', p_policy => 'enabled');
CALL rul.activate();
SELECT rul.register('rul.one', p_policy => 'read_only');
CALL rul.activate();
-- Function, composition, bound, definition: each is staged.
SELECT rul.register('rul.two', p_affected => '{all,user:ada,all}');
CALL rul.activate();
SELECT rul.register('rul.two', 'multi_scope');
CALL rul.activate();
SELECT rul.register('rul.two', 'multi_scope', 9);
CALL rul.activate();
CREATE OR REPLACE FUNCTION rul.two(p_row_key int) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro BEGIN ATOMIC SELECT 'everybody'; END;
SELECT rul.register('rul.two', 'multi_scope', 9);
SELECT rul.register('rul.two', 'multi_scope', 9);
CALL rul.activate();
SELECT * FROM rul.made OFFSET 1;
SELECT count(DISTINCT r.membership_twin) AS twins, count(DISTINCT r.membership_hash) AS definitions
  FROM synchro.registration r JOIN synchro.relation l USING (rel_no) WHERE l.relation_oid = 'rul.note'::regclass AND r.membership_function = 'rul.two'::regproc;
-- Within a transaction the last call counts; there and back again is no change.
BEGIN;
SELECT rul.register('rul.one', 'multi_scope', 9, '{x}');
SELECT rul.register('rul.one', 'multi_scope', 7, '{y}');
COMMIT;
CALL rul.activate();
BEGIN;
SELECT rul.register('rul.two', 'multi_scope', 7, '{x}');
SELECT rul.register('rul.one', 'multi_scope', 7);
COMMIT;
CALL rul.activate();
SELECT generation, base, staged, rules, declared FROM rul.made OFFSET 7;
-- Behind a staged generation everything waits: it is made from that one, and stays published what leaves.
SELECT rul.register('rul.two', 'multi_scope', 7);
SELECT synchro.synchro_register_table('rul.more', 'rul.two', p_push_policy => 'read_only');
SELECT synchro.synchro_unregister_table('rul.note');
SELECT synchro.synchro_register_table('rul.note', 'rul.one');
SELECT generation, base, staged, rules FROM rul.made OFFSET 9;
SELECT tablename FROM pg_publication_tables WHERE schemaname = 'rul' ORDER BY 1;
-- A rejected generation is left aside, and with it what has its new tables; the next one starts from what is in force.
SELECT synchro._newest_generation() - :newest AS newest;
INSERT INTO synchro.backfill (generation) SELECT generation FROM synchro.registry_generation WHERE generation > (SELECT registry_generation FROM synchro.progress);
SELECT g->'state' AS state, g->'reason' AS reason FROM jsonb_array_elements(synchro.synchro_health_detail()#>'{staging,generations}') g;
SET client_min_messages = error;
SELECT synchro._reject_generation(:newest + 11, 'scope_evaluation_failed', NULL);
SET client_min_messages = warning;
SELECT g->'state' AS state, g->'reason' AS reason FROM jsonb_array_elements(synchro.synchro_health_detail()#>'{staging,generations}') g;
SELECT synchro._newest_generation() - :newest AS newest;
SELECT count(DISTINCT relation_oid) AS standing FROM synchro.standing_registration WHERE relation_oid IN ('rul.note'::regclass, 'rul.more'::regclass);
SELECT synchro._sweep_relation('rul.more'::regclass), synchro._sweep_relation('rul.note'::regclass);
SELECT tablename FROM pg_publication_tables WHERE schemaname = 'rul' ORDER BY 1;
SELECT tgrelid::regclass, count(*) FROM pg_trigger WHERE tgrelid IN ('rul.note'::regclass, 'rul.more'::regclass) GROUP BY 1 ORDER BY 1;
DELETE FROM synchro.backfill WHERE state = 'pending';
SELECT synchro.synchro_unregister_table('rul.note');
CALL rul.activate();
SELECT synchro._sweep_relation('rul.note'::regclass);
DROP SCHEMA rul CASCADE;
