-- What each registration call makes: generations, manifests, publication, triggers; and what a repeated call leaves alone.
SET client_min_messages = warning;
\set VERBOSITY terse
CREATE SCHEMA gens;
GRANT USAGE ON SCHEMA gens TO synchro_owner, synchro_worker, synchro_writer;
CREATE TABLE gens.note (id uuid PRIMARY KEY, owner text, body varchar(20), amount numeric(10,2) NOT NULL, made int GENERATED ALWAYS AS IDENTITY,
  twice numeric GENERATED ALWAYS AS (amount * 2) STORED, hidden text, changed_at timestamptz, deleted_at timestamptz);
CREATE UNIQUE INDEX note_owner ON gens.note (owner, body);
CREATE INDEX note_partial ON gens.note (owner) WHERE owner IS NOT NULL;
CREATE INDEX note_hidden ON gens.note (hidden);
CREATE TABLE gens.other (id bigint PRIMARY KEY, owner text);
ALTER TABLE gens.note ENABLE ROW LEVEL SECURITY;
CREATE POLICY push ON gens.note TO synchro_writer USING (true);
GRANT SELECT ON gens.note, gens.other TO synchro_owner, synchro_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON gens.note TO synchro_writer;
SELECT synchro.synchro_prepare_projection_view('gens.note', 'gens_note', '{id,owner}');
SELECT synchro.synchro_prepare_projection_view('gens.note', 'gens_note', '{id,owner}') AS repeated;
-- Another owner may read it once the call is repeated; a call that does not fit grants nothing.
CREATE ROLE gens_owner;
ALTER TABLE gens.note OWNER TO gens_owner;
SELECT synchro.synchro_prepare_projection_view('gens.note', 'gens_note', '{id}') AS does_not_fit;
SELECT has_table_privilege('gens_owner', 'synchro_projection.gens_note', 'SELECT') AS before;
SELECT synchro.synchro_prepare_projection_view('gens.note', 'gens_note', '{id,owner}') AS repeated;
SELECT has_table_privilege('gens_owner', 'synchro_projection.gens_note', 'SELECT') AS afterwards, has_function_privilege('gens_owner', 'synchro._may_read(oid)', 'EXECUTE') AS reads;
ALTER TABLE gens.note OWNER TO CURRENT_USER;
DROP OWNED BY gens_owner;
DROP ROLE gens_owner;
SELECT synchro.synchro_prepare_projection_view('gens.note', 'gens_note', '{id}') AS other_columns;
SELECT synchro.synchro_prepare_projection_view('gens.note', 'gens_note2', '{id,owner}') AS other_name;
SELECT synchro.synchro_prepare_projection_view('gens.other', 'gens_note', '{id,owner}') AS other_relation;
CREATE FUNCTION gens.note_scopes(p_row_key uuid) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
BEGIN ATOMIC SELECT 'user:' || n.owner FROM synchro_projection.gens_note n WHERE n.id = p_row_key AND n.owner IS NOT NULL; END;
CREATE FUNCTION gens.other_scopes(p_row_key bigint) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
BEGIN ATOMIC SELECT 'shared:other'; END;
CREATE FUNCTION gens.stranger_scopes(p_row_key bigint) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
BEGIN ATOMIC SELECT 'user:' || n.owner FROM synchro_projection.gens_note n; END;
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA gens FROM PUBLIC;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA gens TO synchro_worker;
SELECT registry_generation AS first, (SELECT max(generation) FROM synchro.registry_generation) AS newest,
       (SELECT max(schema_version) FROM synchro.manifest) AS version FROM synchro.progress \gset
-- Generations and versions since the start of this file.
CREATE VIEW gens.made AS
  SELECT g.generation - :newest AS generation, g.schema_version - :version AS version, m.transition_class, m.schema_version - m.compatibility_floor AS since_floor,
         (SELECT array_agg(l.physical_relation || ' ' || r.max_scope_fanout ORDER BY l.physical_relation) FROM synchro.registration r
            JOIN synchro.relation l ON l.rel_no = r.rel_no WHERE r.generation = g.generation AND l.physical_schema = 'gens') AS registered
    FROM synchro.registry_generation g JOIN synchro.manifest m ON m.schema_version = g.schema_version WHERE g.generation > :newest ORDER BY g.generation;

-- An empty table: a compatible step. Key, lifecycle and generated fields are not writable; the hidden column and its index are not there.
SELECT synchro.synchro_register_table('gens.note', 'gens.note_scopes', p_exclude_columns => '{hidden}', p_updated_at_col => 'changed_at', p_deleted_at_col => 'deleted_at');
SELECT * FROM gens.made;
SELECT f->>'name' AS name, f->>'type' AS type, f->'nullable' AS nullable, f->'writable' AS writable, f->'precision' AS "precision", f->'scale' AS scale,
       f->'field_id' = t->'primary_key_field_id' AS key, f->'field_id' = t#>'{lifecycle,deleted_at_field_id}' AS deletion
  FROM synchro.manifest m, jsonb_array_elements(m.body::jsonb->'tables') t, jsonb_array_elements(t->'fields') f
 WHERE m.schema_version = :version + 1 AND t->>'name' = 'note' ORDER BY f->>'name' COLLATE "C";
SELECT t->>'composition' AS composition, i->>'name' AS index, i->'unique' AS is_unique, jsonb_array_length(i->'field_ids') AS fields
  FROM synchro.manifest m, jsonb_array_elements(m.body::jsonb->'tables') t, jsonb_array_elements(t->'indexes') i
 WHERE m.schema_version = :version + 1 AND t->>'name' = 'note';
-- The hash is that of the body, and ids are in byte order.
SELECT synchro._manifest_hash((m.body::jsonb - 'schema_hash')::json) = m.schema_hash AND m.body::jsonb->>'schema_hash' = m.schema_hash AS hash_of_body,
       synchro._jcs(m.body::json) = m.body AS canonical,
       (SELECT array_agg(f->>'field_id') = array_agg(f->>'field_id' ORDER BY f->>'field_id' COLLATE "C") FROM jsonb_array_elements(m.body::jsonb#>'{tables,0,fields}') f) AS ordered
  FROM synchro.manifest m WHERE m.schema_version = :version + 1;
SELECT tgname, tgenabled FROM pg_trigger WHERE tgrelid = 'gens.note'::regclass AND NOT tgisinternal ORDER BY 1;
SELECT schemaname, tablename FROM pg_publication_tables WHERE pubname = current_setting('synchro.publication_name') AND schemaname = 'gens';

-- The same again: nothing at all.
SELECT ctid, xmin FROM synchro.registry_generation ORDER BY generation DESC LIMIT 1 \gset before_
SELECT synchro.synchro_register_table('gens.note', 'gens.note_scopes', p_exclude_columns => '{hidden}', p_updated_at_col => 'changed_at', p_deleted_at_col => 'deleted_at');
SELECT ctid = :'before_ctid' AND xmin = :'before_xmin' AS untouched, (SELECT count(*) FROM gens.made) AS generations
  FROM synchro.registry_generation ORDER BY generation DESC LIMIT 1;

-- A changed bound is a new generation under the same manifest.
SELECT synchro.synchro_register_table('gens.note', 'gens.note_scopes', p_exclude_columns => '{hidden}', p_updated_at_col => 'changed_at', p_deleted_at_col => 'deleted_at',
  p_max_scope_fanout => 3);
SELECT * FROM gens.made;

-- A function that reads another relation's projection needs a dependency.
SELECT synchro.synchro_register_table('gens.other', 'gens.stranger_scopes', p_push_policy => 'read_only');

-- A table with rows rematerializes its scopes: Class 3, a new floor. Two calls in one transaction make one generation, and rows
-- that the transaction writes before its end belong to the baseline.
INSERT INTO gens.other VALUES (1, 'a'), (2, 'b');
BEGIN;
SELECT synchro.synchro_register_table('gens.other', 'gens.other_scopes', p_push_policy => 'read_only');
INSERT INTO gens.other VALUES (3, 'c');
SELECT synchro.synchro_register_table('gens.note', 'gens.note_scopes', p_exclude_columns => '{hidden}', p_updated_at_col => 'changed_at', p_deleted_at_col => 'deleted_at',
  p_max_scope_fanout => 4);
COMMIT;
SELECT * FROM gens.made;
SELECT 'synchro_data.r_' || rel_no AS projection FROM synchro.relation WHERE relation_oid = 'gens.other'::regclass \gset
SELECT count(*) AS baselined FROM :projection;

-- After its completion a registering transaction writes no more to what it registered.
BEGIN;
SELECT synchro.synchro_unregister_table('gens.other');
SET CONSTRAINTS ALL IMMEDIATE;
INSERT INTO gens.other VALUES (4, 'd');
ROLLBACK;

-- Nor does it register more; and constraints that were immediate before do not complete it early.
BEGIN;
SELECT synchro.synchro_register_table('gens.note', 'gens.note_scopes', p_exclude_columns => '{hidden}', p_updated_at_col => 'changed_at', p_deleted_at_col => 'deleted_at');
SELECT synchro.synchro_unregister_table('gens.other');
SET CONSTRAINTS ALL IMMEDIATE;
SELECT synchro.synchro_unregister_table('gens.note');
ROLLBACK;
BEGIN;
SET CONSTRAINTS ALL IMMEDIATE;
SELECT synchro.synchro_unregister_table('gens.other');
SELECT synchro.synchro_unregister_table('gens.note');
COMMIT;
SELECT * FROM gens.made ORDER BY generation DESC LIMIT 1;
UPDATE synchro.progress SET registry_generation = (SELECT max(generation) FROM synchro.registry_generation);
BEGIN;
SET CONSTRAINTS ALL IMMEDIATE;
SELECT synchro.synchro_register_table('gens.note', 'gens.note_scopes', p_exclude_columns => '{hidden}', p_updated_at_col => 'changed_at', p_deleted_at_col => 'deleted_at');
SELECT synchro.synchro_register_table('gens.other', 'gens.other_scopes', p_push_policy => 'read_only');
COMMIT;
SELECT * FROM gens.made ORDER BY generation DESC LIMIT 1;
SELECT count(*) FILTER (WHERE r.membership_twin IS NOT NULL) AS twins FROM synchro.registration r WHERE r.generation = (SELECT max(generation) FROM synchro.registry_generation);
UPDATE synchro.progress SET registry_generation = (SELECT max(generation) FROM synchro.registry_generation);

-- Unregistering is an incompatible step. The triggers stay until the worker has activated it, and until then the table cannot come back.
SELECT synchro.synchro_table_id('gens.other') AS table_id \gset
SELECT synchro.synchro_unregister_table('gens.other');
SELECT * FROM gens.made ORDER BY generation DESC LIMIT 1;
SELECT count(*) AS triggers FROM pg_trigger WHERE tgrelid = 'gens.other'::regclass AND NOT tgisinternal;
SELECT synchro.synchro_register_table('gens.other', 'gens.other_scopes', p_push_policy => 'read_only');
UPDATE synchro.progress SET registry_generation = (SELECT max(generation) FROM synchro.registry_generation);
SELECT synchro.synchro_register_table('gens.other', 'gens.other_scopes', p_push_policy => 'read_only');
SELECT synchro.synchro_table_id('gens.other') = :'table_id' AS same_id;
SELECT * FROM gens.made ORDER BY generation DESC LIMIT 1;

-- Tables of one name in two schemas are told apart by their schema.
CREATE SCHEMA gens2;
CREATE TABLE gens2.note (id bigint PRIMARY KEY);
GRANT USAGE ON SCHEMA gens2 TO synchro_owner, synchro_worker;
GRANT SELECT ON gens2.note TO synchro_owner, synchro_worker;
SELECT synchro.synchro_register_table('gens2.note', 'gens.other_scopes', p_push_policy => 'read_only');
SELECT array_agg(t->>'name' ORDER BY t->>'name') FROM synchro.manifest m, jsonb_array_elements(m.body::jsonb->'tables') t
 WHERE m.schema_version = (SELECT max(schema_version) FROM synchro.manifest) AND t->>'name' LIKE '%note';

-- A registration that is rolled back leaves nothing.
BEGIN;
SELECT synchro.synchro_unregister_table('gens2.note');
ROLLBACK;
SELECT count(*) FROM pg_publication_tables WHERE schemaname = 'gens2';

-- Manifests and their fields are immutable.
UPDATE synchro.manifest SET body = '{}';
DELETE FROM synchro.manifest_field;
TRUNCATE synchro.manifest CASCADE;

-- Leave the registry as it was found.
SELECT synchro.synchro_unregister_table(t) FROM unnest('{gens.note,gens.other,gens2.note}'::text[]) t;
UPDATE synchro.progress SET registry_generation = (SELECT max(generation) FROM synchro.registry_generation), schema_version = (SELECT max(schema_version) FROM synchro.manifest);
DROP SCHEMA gens, gens2 CASCADE;
