-- Wire values become column values, or fail the mutation; nothing is rounded or coerced.
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set fixture :abs_srcdir /fixtures/push.sql
\i :fixture
\set ECHO all
CREATE FUNCTION pt.try(p_columns json) RETURNS TABLE (code text, message text, state text) LANGUAGE sql VOLATILE AS $$
  SELECT p.code, p.message, p.state FROM pt.push('ann', p_columns::text, pt.m(p_columns::text, 'insert', 'shop.note', to_json(pt.id(p_columns::text)), p_columns)) p
$$;
-- canonical values
SELECT * FROM pt.try('{"qty": -2147483648, "big": "9223372036854775807", "price": "-123456.78"}');
SELECT * FROM pt.try('{"due": "2026-03-29T02:30:00.123000Z"}');
SELECT * FROM pt.try('{"tags": "[\"a,b\",\"\",null,\"NULL\",\"{\\\"}\"]"}');
SELECT * FROM pt.try('{"tags": "[]", "doc": "null"}');
SELECT * FROM pt.try('{"tags": null, "doc": null, "qty": null}');
SELECT * FROM pt.try('{"doc": "{\"a\":[1,2.5],\"z\":9007199254740991}"}');
-- wrong JSON type, range or form
SELECT * FROM pt.try('{"qty": "1"}');
SELECT * FROM pt.try('{"qty": 1.0}');
SELECT * FROM pt.try('{"qty": 2147483648}');
SELECT * FROM pt.try('{"big": 1}');
SELECT * FROM pt.try('{"big": "9223372036854775808"}');
SELECT * FROM pt.try('{"big": "+1"}');
SELECT * FROM pt.try('{"price": "1.230"}');
SELECT * FROM pt.try('{"title": 1}');
SELECT * FROM pt.try('{"due": "2026-03-29T02:30:00+01:00"}');
SELECT * FROM pt.try('{"due": "2026-02-30T00:00:00.000000Z"}');
SELECT * FROM pt.try('{"doc": "{\"a\": 1}"}');
SELECT * FROM pt.try('{"doc": "9007199254740993"}');
SELECT * FROM pt.try('{"tags": "[[\"a\"]]"}');
-- digits that the column does not keep are refused, not rounded
SELECT * FROM pt.try('{"price": "1.255"}');
SELECT * FROM pt.try('{"price": "1234567.5"}');
SELECT * FROM pt.try('{"due": "2026-03-29T02:30:00.123400Z"}');
-- a key that is not the canonical text of its value
SELECT code, message FROM pt.push('ann', 'k1', pt.m('k1', 'insert', 'shop.note', to_json(upper(pt.id('x')::text)), '{}'));
SELECT code, message FROM pt.push('ann', 'k2', pt.m('k2', 'insert', 'shop.note', '"no uuid"', '{}'));
SELECT code, message FROM pt.push('ann', 'k3', pt.m('k3', 'insert', 'shop.task', '7', '{}'));
SELECT code, message FROM pt.push('ann', 'k4', pt.m('k4', 'insert', 'shop.task', '"07"', '{}'));
SELECT code, message FROM pt.push('ann', 'k5', pt.m('k5', 'insert', 'shop.folder', 'null', '{}'));
-- a failed value leaves its neighbours alone
SELECT list, code FROM pt.push('ann', 'b1', pt.m('n1', 'insert', 'shop.note', to_json(pt.id('n1')), '{"qty": 1}'),
  pt.m('n2', 'insert', 'shop.note', to_json(pt.id('n2')), '{"qty": "one"}'), pt.m('n3', 'insert', 'shop.note', to_json(pt.id('n3')), '{"qty": 3}'));
-- a column that is synced as text takes the canonical text of its type, whatever the settings of the session
SET ROLE shop_owner;
CREATE TABLE shop.span (id int PRIMARY KEY, wait interval, seen timestamptz, n numeric);
GRANT ALL ON shop.span TO synchro_writer;
GRANT SELECT ON shop.span TO synchro_owner;
RESET ROLE;
SELECT pt.register('shop.span', 'enabled', NULL, NULL, NULL, '{wait,seen,n}') \g /dev/null
SET datestyle = 'SQL, DMY';
SET timezone = 'Asia/Kathmandu';
SET intervalstyle = 'sql_standard';
SELECT code, message, state FROM pt.push('ann', 's1', pt.m('s1', 'insert', 'shop.span', '1',
  '{"wait": "-1 days +02:03:00", "seen": "infinity", "n": "NaN"}'));
SELECT code, message, state FROM pt.push('ann', 's2', pt.m('s2', 'insert', 'shop.span', '2', '{"seen": "2026-02-01 00:00:00+00"}'));
SELECT code, message, state FROM pt.push('ann', 's3', pt.m('s3', 'insert', 'shop.span', '3', '{"wait": "soon"}'));
