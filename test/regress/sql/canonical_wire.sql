-- Wire values: canonical form in, text for PostgreSQL's input function out; everything else refused with 22P02.
BEGIN;
SET LOCAL search_path = canonical_wire, pg_catalog;
CREATE SCHEMA canonical_wire;
CREATE TYPE color AS ENUM ('red', 'NULL', 'a,"b\c');
CREATE DOMAIN price AS numeric(6, 2);
CREATE FUNCTION wire(p_type text, p_json text, p_target regtype DEFAULT 0, p_typmod int DEFAULT -1) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  RETURN coalesce(synchro._wire_value(p_type, p_json::json, p_target, p_typmod), '<null>');
EXCEPTION WHEN invalid_text_representation THEN
  RETURN '- ' || SQLERRM;
END $$;

SELECT j, wire('string', j) FROM unnest(ARRAY['"é\n\"\u00e9"', '""', 'null', '1', 'true', '{}', '"\ud800"']) j;
SELECT j, wire('int', j) FROM unnest(ARRAY['0', '-1', '2147483647', '-2147483648', '2147483648', '-0', '1.0', '1e0', '"1"', 'null']) j;
SELECT j, wire('int64', j) FROM unnest(ARRAY['"0"', '"-9223372036854775808"', '"9223372036854775808"', '"-0"', '"01"', '"+1"', '1', '""']) j;
SELECT j, wire('decimal', j) FROM unnest(ARRAY['"0"', '"12.34"', '"-0.5"', '"100"', '"-0"', '"1.0"', '"1.50"', '".5"', '"5."', '"00"', '"01"', '"1e2"', '"+1"', '"NaN"', '"Infinity"', '""', '"-"', '1']) j;
SELECT j, wire('decimal', j, 'numeric', (6 << 16 | 2) + 4) AS "numeric(6,2)", wire('decimal', j, 'price') AS domain
FROM unnest(ARRAY['"9999.99"', '"10000"', '"1.234"', '"0.01"', '"-9999"']) j;
SELECT j, wire('decimal', j, 'numeric', (2 << 16 | 2046) + 4) AS "numeric(2,-2)", wire('decimal', j, 'numeric', (2 << 16 | 4) + 4) AS "numeric(2,4)"
FROM unnest(ARRAY['"9900"', '"10000"', '"150"', '"0"', '"0.0099"', '"0.01"', '"0.0001"', '"0.00001"']) j;
SELECT j, wire('float', j) FROM unnest(ARRAY['0', '0.1', '1e+21', '-1.5e-7', '5e-324', '-0', '1.0', '1e21', '1E+21', '1e400', '"1"', '0.10']) j;
SELECT j, wire('boolean', j) FROM unnest(ARRAY['true', 'false', '1', '"true"', 'null']) j;
SELECT j, wire('datetime', j) FROM unnest(ARRAY['"2024-02-29T23:59:59.999999Z"', '"0001-01-01T00:00:00.000000Z"', '"2023-02-29T00:00:00.000000Z"', '"2024-01-01T24:00:00.000000Z"',
  '"2024-01-01T00:00:60.000000Z"', '"2024-01-01T00:00:00.00000Z"', '"2024-01-01T00:00:00.000000"', '"2024-01-01T00:00:00.000000+00"', '"2024-01-01 00:00:00.000000Z"', '"0000-01-01T00:00:00.000000Z"', '"infinity"']) j;
SELECT j, wire('date', j) FROM unnest(ARRAY['"2000-02-29"', '"1900-02-29"', '"2024-13-01"', '"2024-00-10"', '"2024-04-31"', '"24-01-01"', '"2024-1-1"', '"0000-01-01"']) j;
SELECT j, wire('time', j) FROM unnest(ARRAY['"23:59:59.999999"', '"24:00:00.000000"', '"12:34:56"', '"12:34:56.1234567"', '"12:60:00.000000"', '"12:34:56.123456Z"']) j;
SELECT j, wire('bytes', j) FROM unnest(ARRAY['""', '"AP8"', '"AA"', '"AAA"', '"AAAA"', '"-_8"', '"AP9"', '"AB"', '"A"', '"AQ=="', '"+/8"', '"A P"', '1']) j;
SELECT j, wire('json', j) FROM unnest(ARRAY['"null"', '"{\"a\":1,\"b\":[]}"', '"{\"b\":1,\"a\":2}"', '"{ }"', '"1.0"', '"9007199254740992"', '"\"\\u0041\""', '""', '{}', 'null']) j;

-- Arrays come as JSON arrays of wire values and leave as array literals.
SELECT wire('json', to_json(j)::text, t) AS literal,
       (SELECT CASE t WHEN 'int4[]'::regtype THEN wire('json', to_json(j)::text, t)::int[]::text WHEN 'text[]'::regtype THEN wire('json', to_json(j)::text, t)::text[]::text
                      WHEN 'color[]'::regtype THEN wire('json', to_json(j)::text, t)::color[]::text WHEN 'bytea[]'::regtype THEN wire('json', to_json(j)::text, t)::bytea[]::text
                      WHEN 'box[]'::regtype THEN wire('json', to_json(j)::text, t)::box[]::text END) AS value
FROM (VALUES ('[1,null,-3]', 'int4[]'::regtype), ('[]', 'int4[]'), ('["a,b","",null,"NULL","q\"\\\\{}"," x "]', 'text[]'), ('["red","NULL",null,"a,\"b\\c"]', 'color[]'),
  ('["AP8",""]', 'bytea[]'), ('["(1,1),(0,0)","(3,3),(2,2)"]', 'box[]')) v(j, t);
SELECT j, wire('json', to_json(j)::text, 'int4[]') FROM unnest(ARRAY['[1.5]', '["1"]', '{}', '1', '[[1]]', '[ 1]', '[2147483648]']) j;

-- What an input function would cut is refused.
SELECT wire('string', to_json(repeat('x', n))::text, 'name') AS name, wire('string', to_json(repeat('x', n / 62))::text, '"char"') AS "char" FROM unnest(ARRAY[63, 64, 124]) n;

SELECT synchro._wire_value('number', '1');
ROLLBACK;
