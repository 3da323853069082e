-- Generated columns that are not stored are refused. Only PostgreSQL 18 has them: its output is registration_virtual_1.out.
\set SHOW_CONTEXT never
SELECT current_setting('server_version_num')::int >= 180000 AS has_virtual \gset
\if :has_virtual
\else
SELECT 'no virtual columns' AS skipped;
\quit
\endif
CREATE SCHEMA virtual;
CREATE TABLE virtual.t (id uuid PRIMARY KEY, a int, b int GENERATED ALWAYS AS (a * 2), c int GENERATED ALWAYS AS (a * 3) STORED);
GRANT USAGE ON SCHEMA virtual TO synchro_owner, synchro_worker;
GRANT SELECT ON virtual.t TO synchro_owner, synchro_worker;
CREATE FUNCTION virtual.scopes(p_row_key uuid) RETURNS SETOF text LANGUAGE sql STABLE
SET search_path = pg_catalog, synchro BEGIN ATOMIC SELECT 'shared:virtual'; END;
REVOKE EXECUTE ON FUNCTION virtual.scopes(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION virtual.scopes(uuid) TO synchro_worker;
SELECT synchro.synchro_register_table('virtual.t', 'virtual.scopes', p_push_policy => 'read_only');
SELECT synchro.synchro_prepare_projection_view('virtual.t', 'virtual_t', '{id,b}');
SELECT synchro.synchro_register_table('virtual.t', 'virtual.scopes', p_push_policy => 'read_only', p_text_columns => '{b}');
-- Excluded it does not matter.
BEGIN;
SELECT synchro.synchro_register_table('virtual.t', 'virtual.scopes', p_push_policy => 'read_only', p_exclude_columns => '{b}');
SELECT column_name, generated FROM synchro.captured_column c JOIN synchro.relation l USING (rel_no)
 WHERE l.relation_oid = 'virtual.t'::regclass ORDER BY c.attnum;
ROLLBACK;
