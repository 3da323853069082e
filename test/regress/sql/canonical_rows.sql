-- Rows under a manifest: JSON, digest and identity from the source table, its projection and anonymous rows, under any settings.
BEGIN;
SET LOCAL search_path = canonical_rows, pg_catalog;
CREATE SCHEMA canonical_rows;
CREATE TYPE color AS ENUM ('red', 'Grün');
CREATE DOMAIN price AS numeric(10, 2);
-- c2 is the first column: projection names and own names must not be mixed up.
CREATE TABLE source (c2 text PRIMARY KEY, c1 text, i2 int2, i4 int, i8 bigint, n numeric, p price, f4 real, f8 float8, b bool, ts timestamp, tz timestamptz,
  d date, t time, j json, jb jsonb, by bytea, u uuid, e color, es color[], ia int[], ta text[], fa float8[], tza timestamptz[], ba bytea[], iv interval,
  ttz timetz, r tstzrange, pt point, skipped int, inf timestamptz, big jsonb, hex bytea);
ALTER TABLE source DROP COLUMN skipped;
INSERT INTO source VALUES
  ('ключ "1"', 'text', -5, 2147483647, 9007199254740993, 1.2300, 5.10, 16777217, 0.1, true, '2024-02-29 12:34:56.123456', '2024-02-29 12:34:56.5+05:45',
   '1944-03-15', '23:59:59.999999', '{"b":1.0, "a":[1e2,"\u00e9"]}', '{"z":1.50,"aa":{"y":null}}', '\x00ff', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', 'Grün',
   '{red,NULL,Grün}', '{1,NULL,-3}', '{"a,b","",NULL,"q\"\\"}', '{0.1,1e15}', '{2024-01-01 00:00+01,NULL}', '{"\\x00ff"}', '1 year -2 days 03:04:05.5',
   '12:00+02', '[2024-01-01 00:00+01,)', '(0.1,2)', 'infinity', '{"n": 12345678901234567890123}', '\xdead'),
  ('low', '', 0, -2147483648, -9223372036854775808, 0.00, -0.5, -0.0, -0.0, false, '0001-01-01', '0001-01-01 00:00Z', '0001-01-01', '00:00', 'null', '"x"', '',
   '00000000-0000-0000-0000-000000000000', 'red', '{}', '{}', '{}', '{-0.0}', '{}', '{}', '0', '00:00+00', 'empty', '(-0,1e300)', '-infinity', '1', ''),
  ('high', 'z', 32767, 0, 0, 1e30, 12345678, 3.4e38, 1.7976931348623157e308, true, '9999-12-31 23:59:59.999999', '9999-12-31 23:59:59.999999Z', '9999-12-31',
   '12:00:00.000001', '"\ud83d\ude00"', '[]', '\x', 'ffffffff-ffff-ffff-ffff-ffffffffffff', 'red', NULL, NULL, NULL, NULL, NULL, NULL, '-1 mon', NULL, NULL, NULL,
   '0044-03-15 00:00Z BC', '{}', NULL);
INSERT INTO source (c2) VALUES ('nulls');
-- Old rows do not store this column.
ALTER TABLE source ADD COLUMN late text DEFAULT 'default of old rows';

INSERT INTO synchro.manifest VALUES (9000001, repeat('ab', 32), NULL, 'initial', 9000001, '{}');
INSERT INTO synchro.relation (rel_no, table_id, physical_schema, physical_relation, relation_oid) OVERRIDING SYSTEM VALUE
  VALUES (9000001, '70000000-0000-4000-8000-000000000001', 'canonical_rows', 'source', 'source'::regclass);
-- Field ids are not in column order.
INSERT INTO synchro.manifest_field
SELECT 9000001, 9000001, format('00000000-0000-4000-8000-%s', lpad(to_hex(attnum * 7919 % 65536), 12, '0'))::uuid, attname, attnum,
       synchro._portable_type(atttypid, t), t, true, attname <> 'c2', attname = 'c2'
FROM pg_attribute, LATERAL (SELECT attname IN ('inf', 'big', 'hex')) x(t) WHERE attrelid = 'source'::regclass AND attnum > 0 AND NOT attisdropped;

-- One row, field by field.
SELECT f.column_name, f.type, j.value FROM source s, json_each(synchro._row_json(9000001, 9000001, s)::json) j
JOIN synchro.manifest_field f ON f.schema_version = 9000001 AND f.field_id::text = j.key WHERE s.c2 = 'ключ "1"' ORDER BY f.attnum;
SELECT f.column_name, j.value FROM source s, json_each(synchro._row_json(9000001, 9000001, s)::json) j
JOIN synchro.manifest_field f ON f.schema_version = 9000001 AND f.field_id::text = j.key WHERE s.c2 = 'low' ORDER BY f.attnum;
SELECT f.column_name, j.value FROM source s, json_each(synchro._row_json(9000001, 9000001, s)::json) j
JOIN synchro.manifest_field f ON f.schema_version = 9000001 AND f.field_id::text = j.key WHERE s.c2 = 'high' ORDER BY f.attnum;
SELECT count(*) AS fields, bool_and(j.key > o.key) AS ordered, count(*) FILTER (WHERE j.value::text = 'null') AS nulls
FROM source s, json_each(synchro._row_json(9000001, 9000001, s)::json) WITH ORDINALITY j(key, value, n)
LEFT JOIN json_each(synchro._row_json(9000001, 9000001, s)::json) WITH ORDINALITY o(key, value, n) ON o.n = j.n - 1 WHERE s.c2 = 'nulls';

-- The same bytes from the projection, from an anonymous projection row and from an anonymous row with own names.
-- Unseen: which type names need quotes differs between PostgreSQL versions.
\set ECHO none
SELECT format('CREATE TABLE synchro_data.r_%s (%s, PRIMARY KEY (c1))', 9000001, string_agg(format('c%s %s', attnum, synchro._storage_type(atttypid)), ', ' ORDER BY attnum))
FROM pg_attribute WHERE attrelid = 'source'::regclass AND attnum > 0 AND NOT attisdropped \gexec
SET LOCAL datestyle = 'ISO';
SET LOCAL timezone = 'UTC';
SELECT format('INSERT INTO synchro_data.r_%s SELECT %s FROM source', 9000001, string_agg(format('%I::text::%s', attname, synchro._storage_type(atttypid)), ', ' ORDER BY attnum))
FROM pg_attribute WHERE attrelid = 'source'::regclass AND attnum > 0 AND NOT attisdropped \gexec
\set ECHO all
RESET datestyle;
RESET timezone;
CREATE VIEW forms AS SELECT s.c2 AS key, synchro._row_json(9000001, 9000001, s) AS json, synchro._row_digest(9000001, 9000001, s, 'version 1') AS digest FROM source s;
CREATE TABLE expected AS SELECT * FROM forms;
SELECT count(*) FILTER (WHERE e.json = synchro._row_json(9000001, 9000001, p)) AS same_json,
       count(*) FILTER (WHERE e.digest = synchro._row_digest(9000001, 9000001, p, 'version 1')) AS same_digest,
       count(*) FILTER (WHERE e.digest <> synchro._row_digest(9000001, 9000001, p, 'version 2')) AS other_version
FROM synchro_data.r_9000001 p JOIN expected e ON e.key = p.c1;
SELECT count(*) AS anonymous_projection FROM (SELECT * FROM synchro_data.r_9000001 OFFSET 0) p JOIN expected e ON e.key = p.c1 WHERE e.json = synchro._row_json(9000001, 9000001, p);
SELECT count(*) AS anonymous_source FROM (SELECT *, 1 AS more FROM source OFFSET 0) p JOIN expected e ON e.key = p.c2 WHERE e.json = synchro._row_json(9000001, 9000001, p.*);

-- No setting changes a byte.
SET LOCAL datestyle = 'SQL, DMY';
SET LOCAL timezone = 'Asia/Kathmandu';
SET LOCAL intervalstyle = 'sql_standard';
SET LOCAL extra_float_digits = -15;
SET LOCAL bytea_output = 'escape';
SET LOCAL lc_monetary = 'C';
SET LOCAL array_nulls = off;
SET LOCAL xmloption = document;
SELECT count(*) AS same FROM forms JOIN expected USING (key, json, digest);
SELECT current_setting('datestyle') AS datestyle, current_setting('timezone') AS timezone, now() = (now()::text)::timestamptz AS still_ours, '1 day 1 hour'::interval, 0.1::float8, '\xff'::bytea;
SET LOCAL datestyle = 'German';
SET LOCAL intervalstyle = 'iso_8601';
SET LOCAL timezone = 'America/New_York';
SELECT count(*) AS same FROM forms JOIN expected USING (key, json, digest);
RESET datestyle; RESET timezone; RESET intervalstyle; RESET extra_float_digits; RESET bytea_output; RESET array_nulls;

-- Identity, and the digest spelled out with the server's own functions.
SELECT synchro._row_identity(9000001, 9000001, 'k');
CREATE TABLE small (id int PRIMARY KEY, "Text" text);
INSERT INTO synchro.relation (rel_no, table_id, physical_schema, physical_relation, relation_oid) OVERRIDING SYSTEM VALUE
  VALUES (9000002, '70000000-0000-4000-8000-000000000002', 'canonical_rows', 'small', 'small'::regclass);
INSERT INTO synchro.manifest_field SELECT 9000001, rel_no, format('00000000-0000-4000-8000-%s', lpad((2 - attnum)::text, 12, '0'))::uuid, attname, attnum,
  synchro._portable_type(atttypid, false), false, true, true, attnum = 1 FROM synchro.relation JOIN pg_attribute ON attrelid = relation_oid AND attnum > 0 WHERE relation_oid = 'small'::regclass;
INSERT INTO small VALUES (-2, 'é'), (7, NULL);
CREATE FUNCTION blob(bytea) RETURNS bytea LANGUAGE sql AS $$ SELECT int8send(length($1)) || $1 $$;
CREATE FUNCTION blob(text) RETURNS bytea LANGUAGE sql AS $$ SELECT blob(convert_to($1, 'UTF8')) $$;
SELECT id, synchro._row_digest(9000002, 9000001, s, 'v') = sha256('synchro:v3:row-digest:v1'::bytea || '\x00' || decode(repeat('ab', 32), 'hex')
    || blob(i) || blob('\x00000002'::bytea || blob('00000000-0000-4000-8000-000000000000') || CASE WHEN "Text" IS NULL THEN '\x0100'::bytea ELSE '\x0101'::bytea || blob("Text") END
                       || blob('00000000-0000-4000-8000-000000000001') || '\x0201' || int4send(id)) || blob('v')) AS digest,
  synchro._row_identity(9000002, 9000001, id::text) = i AS identity
FROM small s, LATERAL (SELECT 'synchro:v3:row-identity:v1'::bytea || '\x00' || blob('70000000-0000-4000-8000-000000000002') || blob('00000000-0000-4000-8000-000000000001') || '\x0201' || int4send(id) AS i) x;

-- Refusals.
\set VERBOSITY terse
SAVEPOINT s;
SELECT synchro._row_json(9000002, 9000002, s) FROM small s;
ROLLBACK TO s;
SELECT synchro._row_json(9000002, 9000001, ROW(1, 'x'));
ROLLBACK TO s;
SELECT synchro._row_json(9000002, 9000001, x) FROM (SELECT 1::bigint AS id, ''::text AS "Text" OFFSET 0) x;
ROLLBACK TO s;
SELECT synchro._row_json(9000002, 9000001, x) FROM (SELECT NULL::int AS id, ''::text AS "Text" OFFSET 0) x;
ROLLBACK TO s;
SELECT synchro._row_json(9000002, 9000001, x) FROM (SELECT 1 AS id, U&'\FDD0'::text AS "Text" OFFSET 0) x;
ROLLBACK TO s;
SELECT synchro._row_digest(9000002, 9000001, s, '') FROM small s;
ROLLBACK TO s;
SELECT synchro._row_identity(9000002, 9000001, '01');
ROLLBACK TO s;

-- Rows of different relations through one call.
CREATE FUNCTION pick(p_rel int) RETURNS record LANGUAGE plpgsql AS $$
BEGIN
  IF p_rel = 9000001 THEN
    RETURN (SELECT s FROM source s WHERE s.c2 = 'low');
  END IF;
  RETURN (SELECT s FROM small s WHERE s.id = 7);
END $$;
SELECT n, right(synchro._row_json(9000001 + n % 2, 9000001, pick(9000001 + n % 2)), 60) FROM generate_series(0, 3) n;
ROLLBACK;
