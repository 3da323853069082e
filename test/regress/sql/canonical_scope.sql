-- Scope digests: live entries of the manifest's relations in identity order; digests of another manifest are made anew.
BEGIN;
SET LOCAL search_path = canonical_scope, pg_catalog;
CREATE SCHEMA canonical_scope;
CREATE TABLE words (id text PRIMARY KEY, a int);
CREATE TABLE numbers (id bigint PRIMARY KEY, a text);
CREATE TABLE other (id int PRIMARY KEY);
INSERT INTO synchro.manifest VALUES (9000004, repeat('aa', 32), NULL, 'initial', 9000004, '{}'), (9000005, repeat('bb', 32), 9000004, 'class_3', 9000005, '{}');
INSERT INTO synchro.relation (rel_no, table_id, physical_schema, physical_relation, relation_oid) OVERRIDING SYSTEM VALUE VALUES
  (9000001, '90000000-0000-4000-8000-000000000000', 'canonical_scope', 'words', 'words'::regclass), (9000002, '10000000-0000-4000-8000-000000000000', 'canonical_scope', 'numbers', 'numbers'::regclass),
  (9000003, '50000000-0000-4000-8000-000000000000', 'canonical_scope', 'other', 'other'::regclass);
-- Relation "other" is in neither manifest.
INSERT INTO synchro.manifest_field SELECT v, rel_no, format('00000000-0000-4000-8000-%s', lpad((rel_no * 10 + attnum)::text, 12, '0'))::uuid, attname, attnum,
  synchro._portable_type(atttypid, false), false, true, true, attnum = 1
FROM (VALUES (9000004), (9000005)) m(v), synchro.relation JOIN pg_attribute ON attrelid = relation_oid AND attnum > 0 WHERE rel_no IN (9000001, 9000002);
CREATE TABLE synchro_data.r_9000001 (c1 text PRIMARY KEY, c2 int, server_version text);
CREATE TABLE synchro_data.r_9000002 (c1 bigint PRIMARY KEY, c2 text, server_version text);
INSERT INTO synchro_data.r_9000001 SELECT k, length(k), 'v' || k FROM unnest(ARRAY['', 'b', 'aa', 'ab', 'é', repeat('x', 127), repeat('a', 128), repeat('a', 300)]) k;
INSERT INTO synchro_data.r_9000002 SELECT n, 'n', 'v' || n FROM unnest(ARRAY[0, -1, 1, 256, 9223372036854775807, -9223372036854775808]) n;
CREATE FUNCTION fill(p_scope bigint, p_words int, p_numbers int, p_schema bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('INSERT INTO synchro.scope_entry (scope_no, commit_lsn, event_ordinal, digest_schema, rel_no, effect_ordinal, state, key, server_version, row_digest)
    SELECT $1, ''0/1''::pg_lsn, 0, $2, %1$s, 0, ''l'', synchro._key_bytes(''string'', c1), server_version, synchro._row_digest(%1$s, $2, p, server_version) FROM synchro_data.r_%1$s p
    UNION ALL SELECT $1, ''0/1''::pg_lsn, 0, $2, %2$s, 0, ''l'', synchro._key_bytes(''int64'', c1::text), server_version, synchro._row_digest(%2$s, $2, p, server_version) FROM synchro_data.r_%2$s p', p_words, p_numbers)
  USING p_scope, p_schema;
END $$;
SELECT fill(1, 9000001, 9000002, 9000004), fill(2, 9000001, 9000002, 9000005), fill(4, 9000001, 9000002, 9000004);
-- Not counted: tombstones, left entries, a relation outside the manifest, another scope.
INSERT INTO synchro.scope_entry (scope_no, commit_lsn, event_ordinal, digest_schema, rel_no, effect_ordinal, state, key, server_version, row_digest)
VALUES (1, '0/1', 0, 9000004, 9000001, 0, 's', '\x0173', 'v', sha256('')), (1, '0/1', 0, 9000004, 9000001, 0, 'x', '\x0174', 'v', NULL), (1, '0/1', 0, 9000004, 9000003, 0, 'l', '\x00000001', 'v', sha256(''));

-- The independent computation sorts the identities and hashes once.
CREATE FUNCTION verify(p_scope bigint, p_schema bigint, p_id text, p_words int, p_numbers int) RETURNS text LANGUAGE sql AS $$
  SELECT synchro._verify_scope_digest((SELECT schema_hash FROM synchro.manifest WHERE schema_version = p_schema), p_id, coalesce(array_agg(i), '{}'), coalesce(array_agg(d), '{}'))
  FROM (SELECT synchro._row_identity(rel_no, p_schema, synchro._key_text(CASE rel_no WHEN p_words THEN 'string' ELSE 'int64' END, key)) AS i, row_digest AS d
        FROM synchro.scope_entry WHERE scope_no = p_scope AND state = 'l' AND rel_no IN (p_words, p_numbers)) x $$;
SELECT cardinality, digest = verify(1, 9000004, 'user:é', 9000001, 9000002) AS verified FROM synchro._scope_digest(1, 9000004, 'user:é');
SELECT cardinality, digest = verify(2, 9000005, 'user:é', 9000001, 9000002) AS verified FROM synchro._scope_digest(2, 9000005, 'user:é');
SELECT (SELECT digest FROM synchro._scope_digest(1, 9000004, 'a')) <> (SELECT digest FROM synchro._scope_digest(1, 9000004, 'b')) AS id_counts,
       (SELECT digest FROM synchro._scope_digest(1, 9000004, 'a')) <> (SELECT digest FROM synchro._scope_digest(2, 9000005, 'a')) AS schema_counts;
SELECT cardinality, digest = verify(3, 9000004, 'empty', 9000001, 9000002) AS verified FROM synchro._scope_digest(3, 9000004, 'empty');

-- Every digest stale; then some.
SELECT (SELECT digest FROM synchro._scope_digest(4, 9000005, 'user:é')) = (SELECT digest FROM synchro._scope_digest(2, 9000005, 'user:é')) AS renewed;
UPDATE synchro.scope_entry e SET digest_schema = 9000005, row_digest = o.row_digest FROM synchro.scope_entry o
 WHERE e.scope_no = 4 AND o.scope_no = 2 AND o.rel_no = e.rel_no AND o.key = e.key AND length(e.key) % 2 = 0;
SELECT (SELECT digest FROM synchro._scope_digest(4, 9000005, 'user:é')) = (SELECT digest FROM synchro._scope_digest(2, 9000005, 'user:é')) AS renewed;

-- Damage is not hashed.
\set VERBOSITY terse
SAVEPOINT s;
DELETE FROM synchro_data.r_9000001 WHERE c1 = 'aa';
SELECT * FROM synchro._scope_digest(1, 9000005, 'x');
ROLLBACK TO s;
UPDATE synchro.scope_entry SET row_digest = '\x00' WHERE scope_no = 1 AND rel_no = 9000001;
SELECT * FROM synchro._scope_digest(1, 9000004, 'x');
ROLLBACK TO s;
UPDATE synchro.scope_entry SET row_digest = NULL WHERE scope_no = 1 AND rel_no = 9000001;
SELECT * FROM synchro._scope_digest(1, 9000004, 'x');
ROLLBACK TO s;
UPDATE synchro.scope_entry SET key = '\x05' WHERE scope_no = 1 AND rel_no = 9000001 AND state = 'l' AND key = '\x0162';
SELECT * FROM synchro._scope_digest(1, 9000004, 'x');
ROLLBACK TO s;
SELECT * FROM synchro._scope_digest(1, 9000006, 'x');
ROLLBACK TO s;
SELECT * FROM synchro._scope_digest(1, 9000004, '');
ROLLBACK;
