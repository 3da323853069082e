-- What the worker writes with: rows, the scopes that hold them, entries.
\set SHOW_CONTEXT never
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA ap;
CREATE TABLE ap.item (id int PRIMARY KEY, body text, n numeric, deleted_at timestamptz);
GRANT USAGE ON SCHEMA ap TO synchro_owner, synchro_worker;
GRANT SELECT ON ap.item TO synchro_owner, synchro_worker;
BEGIN;
SELECT synchro.synchro_prepare_projection_view('ap.item', 'ap_item', '{id}');
CREATE FUNCTION ap.scopes(p_row_key int) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
BEGIN ATOMIC SELECT 'all' FROM synchro_projection.ap_item i WHERE i.id = p_row_key; END;
REVOKE EXECUTE ON FUNCTION ap.scopes(int) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ap.scopes(int) TO synchro_worker;
SELECT synchro.synchro_register_table('ap.item', 'ap.scopes', p_push_policy => 'read_only', p_deleted_at_col => 'deleted_at');
COMMIT;
SELECT rel_no AS rel FROM synchro.relation WHERE relation_oid = 'ap.item'::regclass \gset
SELECT schema_version AS schema FROM synchro.registry_generation ORDER BY generation DESC LIMIT 1 \gset
-- The parameter's form. A value '<kept>' is left out.
CREATE FUNCTION ap.value(p text) RETURNS bytea LANGUAGE sql AS $$
  SELECT CASE WHEN p IS NULL THEN '\xffffffff'::bytea WHEN p = '<kept>' THEN '\xfffffffe'
              ELSE int4send(length(convert_to(p, 'UTF8'))) || convert_to(p, 'UTF8') || '\x00' END $$;
CREATE FUNCTION ap.row(p_how text, p_version int, VARIADIC p_values text[]) RETURNS bytea LANGUAGE sql AS $$
  SELECT convert_to(p_how || lpad(p_version::text, 16, 'v'), 'UTF8') || int4send(700)
         || (SELECT string_agg(ap.value(v), '' ORDER BY ord) FROM unnest(p_values) WITH ORDINALITY u(v, ord)) $$;
CREATE FUNCTION ap.rows(p_width int, VARIADIC p_rows bytea[]) RETURNS bytea LANGUAGE sql AS $$
  SELECT substr(int2send(p_width::int2), 2) || '\x00040001000200030004' || (SELECT string_agg(r, '' ORDER BY ord) FROM unnest(p_rows) WITH ORDINALITY u(r, ord)) $$;
-- What is told, as text.
CREATE FUNCTION ap.told(p bytea) RETURNS TABLE (bits int, key bytea, digest bytea, scopes int8[], tid tid) LANGUAGE plpgsql AS $$
DECLARE
  i int := 1;
  n int;
BEGIN
  WHILE i <= length(p) LOOP
    bits := get_byte(p, i - 1);
    n := get_byte(p, i) * 256 + get_byte(p, i + 1);
    key := substr(p, i + 3, n);
    i := i + 3 + n;
    digest := substr(p, i, 32);
    n := get_byte(p, i + 31) * 256 + get_byte(p, i + 32);
    i := i + 34;
    scopes := ARRAY(SELECT ('x' || encode(substr(p, i + 8 * k, 8), 'hex'))::bit(64)::int8 FROM generate_series(0, n - 1) k);
    i := i + 8 * n;
    tid := format('(%s,%s)', ('x' || encode(substr(p, i, 4), 'hex'))::bit(32)::int, ('x' || encode(substr(p, i + 4, 2), 'hex'))::bit(16)::int)::tid;
    i := i + 6;
    RETURN NEXT;
  END LOOP;
END
$$;
CREATE FUNCTION ap.store(p_rel int, p_schema bigint, p_rows bytea) RETURNS TABLE (bits int, key bytea, scopes int8[]) LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY EXECUTE format('WITH s AS MATERIALIZED (SELECT synchro._store_rows($1, $2, 1::int2, 4::int2, $3) r) SELECT t.bits, t.key, t.scopes FROM s, ap.told(s.r) t')
    USING p_rel, p_schema, p_rows;
END
$$;
CREATE FUNCTION ap.scope_rows(p_rel int, p_id int, p_scopes int8[]) RETURNS bytea LANGUAGE plpgsql AS $$
DECLARE
  v_tid tid;
BEGIN
  EXECUTE format('SELECT ctid FROM synchro_data.r_%s WHERE c1 = $1', p_rel) INTO v_tid USING p_id;
  RETURN tidsend(v_tid) || int2send(cardinality(p_scopes)::int2) || coalesce((SELECT string_agg(int8send(s), '' ORDER BY ord) FROM unnest(p_scopes) WITH ORDINALITY u(s, ord)), '');
END
$$;
CREATE VIEW ap.projection AS SELECT *, ctid AS at FROM synchro_data.r_:rel;

-- New rows are told of with their key, and have a placeholder of the given width.
BEGIN;
SELECT bits, key, scopes FROM ap.store(:rel, :schema, ap.rows(1, ap.row('n', 1, '1', 'one', '1.50', NULL), ap.row('n', 2, '-2', NULL, NULL, '2026-01-02 03:04:05+00'), ap.row('a', 3, '3', 'three', '3', NULL)));
SELECT c1, c2, c3, c4 AT TIME ZONE 'UTC' AS c4, server_version, row_xmin, scopes FROM ap.projection ORDER BY c1;
CREATE TEMP TABLE before AS SELECT at, c1 FROM ap.projection;
-- As many as foreseen: in place. Another number: a new version.
SELECT synchro._store_scopes(:rel, ap.scope_rows(:rel, 1, '{7}') || ap.scope_rows(:rel, -2, '{8,9}') || ap.scope_rows(:rel, 3, '{}'));
SELECT c1, scopes, p.at = b.at AS in_place FROM ap.projection p JOIN before b USING (c1) ORDER BY c1;
-- A row of the transaction around is not overwritten in a subtransaction, which may be undone.
SAVEPOINT s;
SELECT synchro._store_scopes(:rel, ap.scope_rows(:rel, 1, '{99}'));
ROLLBACK TO s;
SELECT scopes FROM ap.projection WHERE c1 = 1;
COMMIT;
DROP TABLE before;

-- Digests are those of the stored rows. A row that this transaction did not insert is never overwritten.
BEGIN;
CREATE TEMP TABLE told AS SELECT t.* FROM ap.told(synchro._store_rows(:rel, :schema, 1::int2, 4::int2,
  ap.rows(3, ap.row('a', 4, '1', 'uno', '2', NULL), ap.row('o', 5, '-2', '<kept>', '7', '<kept>'), ap.row('n', 6, '4', '', '4', NULL)))) t;
SELECT c1, c2, c3, server_version, p.scopes, bits, t.scopes AS told, digest = synchro._row_digest(:rel, :schema, p, server_version) AS right_digest
  FROM told t JOIN synchro_data.r_:rel p ON p.ctid = t.tid ORDER BY c1;
SELECT synchro._store_scopes(:rel, ap.scope_rows(:rel, 4, '{1,2,3}'));
COMMIT;
CREATE TEMP TABLE before AS SELECT at, c1 FROM ap.projection;
SELECT synchro._store_scopes(:rel, ap.scope_rows(:rel, 1, '{5}') || ap.scope_rows(:rel, 4, '{4,5,6}'));
SELECT c1, scopes, p.at = b.at AS in_place FROM ap.projection p JOIN before b USING (c1) ORDER BY c1;
-- Nothing is told of a dependency's rows, and they have no placeholder.
SELECT length(synchro._store_rows(:rel, 0, 1::int2, 0::int2, ap.rows(0, ap.row('n', 7, '5', 'five', '5', NULL))));
SELECT c1, scopes FROM ap.projection WHERE c1 = 5;

-- Refused as a whole.
SELECT ap.store(:rel, :schema, ap.rows(1, ap.row('n', 1, '6', 'six', '1', NULL), ap.row('n', 1, '1', 'there already', '1', NULL)));
SELECT ap.store(:rel, :schema, ap.rows(1, ap.row('n', 1, '6', 'six', '1', NULL), ap.row('o', 1, '7', '<kept>', '1', NULL)));
SELECT ap.store(:rel, :schema, ap.rows(1, ap.row('n', 1, '6', 'six', 'no number', NULL)));
SELECT ap.store(:rel, :schema, ap.rows(1, ap.row('n', 1, '6', 'six', 'NaN', NULL)));
SELECT ap.store(:rel, :schema, ap.rows(1, ap.row('a', 1, '6', '<kept>', '1', NULL)));
SELECT ap.store(:rel, :schema, substr(ap.rows(1, ap.row('n', 1, '6', 'six', '1', 'now')), 1, 50));
SELECT count(*) FROM ap.projection WHERE c1 > 5;
-- Many rows, some of them large.
SELECT count(*), sum(bits), count(DISTINCT key) FROM ap.store(:rel, :schema,
  (SELECT ap.rows(1, VARIADIC array_agg(ap.row('n', i, i::text, repeat('x', CASE WHEN i % 100 = 0 THEN 20000 ELSE 10 END), '1', NULL) ORDER BY i)) FROM generate_series(1000, 3499) i));
SELECT count(*), sum(length(c2)), min(scopes), max(scopes) FROM ap.projection WHERE c1 >= 1000;

-- Rows are read by their keys in any order, also those that have been stored again, and those that are not there.
CREATE VIEW ap.expected AS
  SELECT p.c1::text AS id, CASE WHEN p.c4 IS NULL THEN '\x00'::bytea ELSE '\x01' END || '\x0004' || synchro._key_bytes('int', p.c1::text) || synchro._row_digest(:rel, :schema, p, p.server_version)
         || int2send(cardinality(p.scopes)::int2) || coalesce((SELECT string_agg(int8send(s), '' ORDER BY n) FROM unnest(p.scopes) WITH ORDINALITY u(s, n)), '')
         || tidsend(p.ctid) || convert_to(p.server_version, 'UTF8') AS told
    FROM synchro_data.r_:rel p;
SELECT count(*) FROM ap.store(:rel, :schema, (SELECT ap.rows(1, VARIADIC array_agg(ap.row('o', i + 1, i::text, '<kept>', '2', NULL) ORDER BY i)) FROM generate_series(1000, 1400) i));
CREATE TEMP TABLE asked (what text, id int, ord int);
INSERT INTO asked SELECT 'all', i, i FROM generate_series(-10, 3600) i;
INSERT INTO asked SELECT 'backwards', i, -i FROM generate_series(-10, 3600) i;
INSERT INTO asked SELECT 'few', i * 90, i FROM generate_series(-1, 40) i;
INSERT INTO asked SELECT 'mixed', i, hashint4(i) FROM generate_series(900, 1900) i;
INSERT INTO asked SELECT 'few and many', i, i FROM generate_series(0, 3600) i WHERE i % 100 = 0 OR i / 300 % 2 = 1;
SELECT what, count(*), count(told), synchro._read_rows(:rel, :schema, 1::int2, 4::int2, array_agg(a.id::text ORDER BY ord)) = string_agg(coalesce(told, '\x04'), '' ORDER BY ord) AS right
  FROM asked a LEFT JOIN ap.expected e ON e.id = a.id::text GROUP BY what ORDER BY what;
SELECT synchro._read_rows(:rel, :schema, 1::int2, 4::int2, '{}');
SELECT synchro._read_rows(:rel, :schema, 1::int2, 4::int2, '{1000,01001}');
SELECT synchro._read_rows(:rel, :schema, 1::int2, 4::int2, '{1000,NULL}');
SELECT synchro._read_rows(:rel, :schema, 1::int2, 4::int2, '{1000,x}');

-- Entries.
CREATE FUNCTION ap.entry(p_scope int8, p_event int8, p_state text, p_key int, p_version int) RETURNS bytea LANGUAGE sql AS $$
  SELECT int8send(p_scope) || int8send(4096) || int8send(p_event) || int4send(9000) || int4send(3) || convert_to(p_state, 'UTF8') || '\x0004' || int4send(p_key)
         || convert_to(lpad(p_version::text, 16, 'v'), 'UTF8') || CASE WHEN p_state = 'x' THEN '' ELSE sha256(int4send(p_version)) END $$;
CREATE FUNCTION ap.entries(p_new boolean, VARIADIC p_entries bytea[]) RETURNS bigint LANGUAGE sql AS $$
  SELECT synchro._store_entries(1, (SELECT string_agg(e, '' ORDER BY ord) FROM unnest(p_entries) WITH ORDINALITY u(e, ord)), p_new) $$;
SELECT ap.entries(true, ap.entry(-1, 1, 'l', 1, 1), ap.entry(-1, 2, 's', 2, 2));
SELECT ap.entries(false, ap.entry(-1, 3, 'x', 2, 3), ap.entry(-1, 4, 'l', 3, 4), ap.entry(-1, 5, 'l', 1, 5));
SELECT scope_no, commit_lsn, event_ordinal, digest_schema, rel_no, effect_ordinal, state, key, server_version, row_digest = sha256(int4send(ltrim(server_version, 'v')::int)) AS digest
  FROM synchro.scope_entry WHERE scope_no = -1 ORDER BY key;
SELECT ap.entries(true, ap.entry(-1, 6, 'l', 4, 6), ap.entry(-1, 6, 'l', 1, 6));
SELECT ap.entries(false, ap.entry(-1, 6, 'l', 4, 6), ap.entry(-1, 7, 'x', 5, 7));
SELECT count(*) FROM synchro.scope_entry WHERE scope_no = -1;
DELETE FROM synchro.scope_entry WHERE scope_no = -1;
-- Many, which are found side by side, far from each other, in no order; that are not there, or in several versions.
CREATE FUNCTION ap.entries(p_event int8, p_state text, p_where text, p_order text DEFAULT 'scope, key') RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  v_entries bytea;
BEGIN
  EXECUTE format('SELECT string_agg(ap.entry(scope, $1, $2, key, $1::int), %L ORDER BY %s) FROM generate_series(-3, -2) scope, generate_series(1, 2000) key WHERE %s',
                 '', p_order, p_where) INTO v_entries USING p_event, p_state;
  RETURN synchro._store_entries(1, v_entries, false);
END $$;
CREATE VIEW ap.stored AS SELECT scope_no, state, event_ordinal, count(*), count(DISTINCT key) AS keys, sum(get_byte(key, 2) * 256 + get_byte(key, 3))
  FROM synchro.scope_entry WHERE scope_no < 0 GROUP BY 1, 2, 3 ORDER BY 1, 2, 3;
SELECT ap.entries(1, 'l', 'key % 2 = 0'), ap.entries(2, 'l', 'key % 20 = 1');
SELECT ap.entries(3, 'l', 'scope = -2 OR key % 3 = 0');
TABLE ap.stored;
SELECT ap.entries(4, 'x', 'key % 100 = 0 AND (scope = -2 OR key % 3 = 0)');
SELECT ap.entries(5, 'l', 'key < 300 AND key % 2 = 0', 'scope DESC, key DESC');
SELECT ap.entries(6, 'x', 'key BETWEEN 500 AND 700 AND key % 2 = 0', 'hashint4(key), scope');
SELECT ap.entries(7, 'l', 'key % 51 = 0');
TABLE ap.stored;
SELECT ap.entries(8, 'x', 'scope = -3 AND key BETWEEN 1000 AND 1010');
DELETE FROM synchro.scope_entry WHERE scope_no < 0;
SELECT synchro.synchro_unregister_table('ap.item');
DROP SCHEMA ap CASCADE;
