-- Values with and without a portable form. Each type is asked plain and as text.
BEGIN;
SET LOCAL search_path = canonical_check, pg_catalog;
CREATE SCHEMA canonical_check;
CREATE TYPE odd AS ENUM (U&'fine', U&'n\FDD0');
CREATE FUNCTION ask(p_type regtype, VARIADIC p_values text[]) RETURNS TABLE (type regtype, value text, plain boolean, as_text boolean)
LANGUAGE plpgsql AS $$
BEGIN
  FOREACH value IN ARRAY p_values LOOP
    EXECUTE format('SELECT synchro._representable(%1$s, false, %2$L::%3$s), synchro._representable(%1$s, true, %2$L::%3$s)',
                   p_type::oid, value, p_type) INTO plain, as_text;
    type := p_type;
    RETURN NEXT;
  END LOOP;
END $$;

SELECT * FROM ask('numeric', '0', '-12.50', '1e1000', 'NaN', 'Infinity', '-Infinity');
SELECT * FROM ask('float8', '-0', '1e308', 'NaN', 'Infinity', '-Infinity');
SELECT * FROM ask('float4', '16777217', 'NaN', '-Infinity');
SELECT * FROM ask('date', '0001-01-01', '9999-12-31', '0001-12-31 BC', '10000-01-01', 'infinity', '-infinity');
SELECT * FROM ask('timestamp', '0001-01-01', '9999-12-31 23:59:59.999999', '0001-12-31 23:59:59.999999 BC', '10000-01-01', 'infinity');
SELECT * FROM ask('timestamptz', '0001-01-01 00:00Z', '9999-12-31 23:59:59.999999Z', '10000-01-01 00:00Z', '-infinity');
SELECT * FROM ask('time', '00:00', '23:59:59.999999', '24:00:00');
SELECT * FROM ask('timetz', '24:00:00+01');
SELECT * FROM ask('bytea', '\x', '\x00ff');
SELECT * FROM ask('json', '{"a":1}', 'null', '"\u0000"', '"\ud800"', '"\ufdd0"', '{"a":1,"\u0061":2}', '9007199254740991', '9007199254740992',
                  '1e15', '1e16', '1e400', '0.1', '-0');
SELECT * FROM ask('jsonb', '{"a":1}', 'null', '"\ufffe"', '9007199254740993', '1e400', '-0.0');
SELECT left(value, 3) AS value, plain, as_text FROM ask('jsonb', repeat('[', 1000) || repeat(']', 1000), repeat('[', 1001) || repeat(']', 1001));
SELECT * FROM ask('int4[]', '{}', '{1,NULL}', '[0:1]={1,2}', '{{1},{2}}');
SELECT * FROM ask('float8[]', '{1e15}', '{1e16}', '{NaN}');
SELECT * FROM ask('timestamptz[]', '{2024-01-01,NULL}', '{infinity}');
SELECT * FROM ask('text[]', '{a,"b,\"c"}', U&'{n\FFFE}');

-- Noncharacters of every plane, at every place of an eight octet word; their neighbours are fine.
SELECT n, bool_and(synchro._representable('text'::regtype, false, repeat('x', n) || U&'\FDCF\FDF0\FFFD\+01FFFD\+10FFFD\+020000é漢😀'))
     AS fine, bool_or(synchro._representable('text'::regtype, false, repeat('x', n) || c || 'y')) AS bad
FROM generate_series(0, 8) n, unnest(ARRAY[U&'\FDD0', U&'\FDEF', U&'\FFFE', U&'\FFFF', U&'\+01FFFE', U&'\+08FFFF', U&'\+10FFFF']) c
GROUP BY n ORDER BY n;

-- Long values are compressed or out of line.
CREATE TABLE long_text (t text, n numeric);
INSERT INTO long_text SELECT repeat('0123456789', 100000) || c, ('1' || repeat('0', 100000) || '.5')::numeric FROM unnest(ARRAY['x', U&'\FFFF']) c;
SELECT right(t, 1) = 'x' AS fine, synchro._representable('text'::regtype, false, t) AS t, synchro._representable('numeric'::regtype, false, n) AS n
FROM long_text ORDER BY 1;

SELECT l AS label, synchro._representable('odd'::regtype, false, l) FROM unnest(enum_range(NULL::odd)) WITH ORDINALITY u(l, n) ORDER BY n;
SELECT c::int, synchro._representable('"char"'::regtype, false, c) FROM unnest(ARRAY[0, 65, 127, -61]) i, CAST(i AS "char") c;

SELECT synchro._representable('int4'::regtype, false, NULL::int) AS "null", synchro._representable('money'::regtype, false, '1'::money) AS money;
SELECT synchro._representable('int8'::regtype, false, 1);
ROLLBACK;
