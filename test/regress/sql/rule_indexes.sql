-- Projections have an index for each column that a rule compares for equality, made once.
SET client_min_messages = warning;
\set VERBOSITY terse
CREATE SCHEMA pix;
CREATE TYPE pix.color AS ENUM ('red', 'blue');
CREATE TABLE pix.box (id bigint PRIMARY KEY, shelf int, color pix.color, note text, owner varchar(20));
CREATE TABLE pix.toy (id bigint PRIMARY KEY, box bigint, color pix.color, tag text, label text);
CREATE INDEX ON pix.toy (tag);   -- bounds nothing: it may go
GRANT USAGE ON SCHEMA pix TO synchro_owner, synchro_worker;
GRANT SELECT ON pix.box, pix.toy TO synchro_owner, synchro_worker;
SELECT synchro.synchro_prepare_projection_view('pix.box', 'pix_box', '{id,shelf,color,note,owner}');
SELECT synchro.synchro_prepare_projection_view('pix.toy', 'pix_toy', '{id,box,color,tag,label}');
CREATE VIEW pix.indexes AS
  SELECT l.physical_relation, regexp_replace(pg_get_indexdef(i.indexrelid), '^.* ON synchro_data.r_\d+ ', '') AS index, i.indisprimary AS key
    FROM synchro.relation l JOIN pg_index i ON i.indrelid = format('synchro_data.r_%s', l.rel_no)::regclass
   WHERE l.physical_schema = 'pix' ORDER BY 1, 3 DESC, 2;
-- Compared: box.shelf with a sibling's through subqueries, box.owner with a constant; box.color of the application's own type has none, and
-- box.note is only returned.
CREATE FUNCTION pix.box_scopes(p_row_key bigint) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
BEGIN ATOMIC
  SELECT b.note FROM (SELECT x.id, x.shelf, x.note FROM synchro_projection.pix_box x) b
   WHERE b.id = p_row_key AND EXISTS (SELECT FROM synchro_projection.pix_box o WHERE o.shelf = b.shelf AND o.owner = 'all' AND o.color = 'red');
END;
CREATE FUNCTION pix.toy_scopes(p_row_key bigint) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
BEGIN ATOMIC
  SELECT 'toy:' || label FROM synchro_projection.pix_toy WHERE id = p_row_key;
END;
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA pix FROM PUBLIC;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA pix TO synchro_worker;
CREATE FUNCTION pix.impact(p_name text, p_body text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('CREATE FUNCTION pix.%s(p_old_row jsonb, p_new_row jsonb) RETURNS SETOF synchro.synchro_row_ref
    LANGUAGE sql STABLE SET search_path = pg_catalog, synchro BEGIN ATOMIC %s; END', p_name, p_body);
  EXECUTE format('REVOKE EXECUTE ON FUNCTION pix.%s FROM PUBLIC; GRANT EXECUTE ON FUNCTION pix.%1$s TO synchro_worker', p_name);
END
$$;
SELECT pix.impact('boxes', format($$SELECT %L, 'int64', b.id::text FROM synchro_projection.pix_box b
  WHERE b.shelf IN ((p_old_row->>'shelf')::int, (p_new_row->>'shelf')::int)$$, synchro.synchro_table_id('pix.box')));
BEGIN;
SELECT synchro.synchro_register_table('pix.box', 'pix.box_scopes', 'multi_scope', p_push_policy => 'read_only', p_text_columns => '{color}');
SELECT synchro.synchro_register_membership_dependency('pix.box', 'pix.box', 'pix.boxes', '{id,shelf,color,note,owner}');
COMMIT;
SELECT * FROM pix.indexes;
-- A later rule that joins on more columns adds theirs: toy.box through IN, toy.tag through a join's USING; of any length, so by hash.
SELECT pix.impact('toys', format($$SELECT %L, 'int64', t.id::text FROM synchro_projection.pix_toy t
    JOIN (SELECT s.id, s.tag FROM synchro_projection.pix_toy s) s USING (tag)
   WHERE t.box = ANY (ARRAY[(p_old_row->>'id')::bigint, (p_new_row->>'id')::bigint])$$, synchro.synchro_table_id('pix.toy')));
BEGIN;
SELECT synchro.synchro_register_table('pix.toy', 'pix.toy_scopes', p_push_policy => 'read_only', p_text_columns => '{color}');
SELECT synchro.synchro_register_membership_dependency('pix.box', 'pix.toy', 'pix.toys', '{id}');
COMMIT;
SELECT * FROM pix.indexes;
-- A column whose bound goes, with the table that is read anew, loses the index that relied on it. A range is found by hash.
CREATE TABLE pix.crate (id bigint PRIMARY KEY, tag varchar(20), span int4range);
GRANT SELECT ON pix.crate TO synchro_owner, synchro_worker;
SELECT synchro.synchro_prepare_projection_view('pix.crate', 'pix_crate', '{id,tag,span}');
CREATE FUNCTION pix.crate_scopes(p_row_key bigint) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
BEGIN ATOMIC
  SELECT 'crate:' || o.tag FROM synchro_projection.pix_crate c JOIN synchro_projection.pix_crate o ON o.tag = c.tag AND o.span = c.span WHERE c.id = p_row_key;
END;
REVOKE EXECUTE ON FUNCTION pix.crate_scopes(bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pix.crate_scopes(bigint) TO synchro_worker;
SELECT pix.impact('crates', format($$SELECT %L, 'int64', c.id::text FROM synchro_projection.pix_crate c
  WHERE c.tag IN (p_old_row->>'tag', p_new_row->>'tag')$$, synchro.synchro_table_id('pix.crate')));
CREATE FUNCTION pix.register_crate() RETURNS void LANGUAGE sql AS $$
  SELECT synchro.synchro_register_table('pix.crate', 'pix.crate_scopes', p_push_policy => 'read_only', p_text_columns => '{span}');
  SELECT synchro.synchro_register_membership_dependency('pix.crate', 'pix.crate', 'pix.crates', '{tag,span}');
$$;
SELECT pix.register_crate();
SELECT index FROM pix.indexes WHERE physical_relation = 'crate';
BEGIN;
SELECT synchro.synchro_unregister_table('pix.crate');
ALTER TABLE pix.crate ALTER tag TYPE varchar(2000);
SELECT pix.register_crate();
COMMIT;
SELECT index FROM pix.indexes WHERE physical_relation = 'crate';
