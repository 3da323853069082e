-- Strict JSON and RFC 8785 text.
SELECT synchro._jcs(j::json) FROM unnest(ARRAY[
  '{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\u20ac$\u000F\u000aA''\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}',
  '{"\u20ac":"Euro","\r":"CR","\ufb33":"Dalet","1":"One","\ud83d\ude00":"Smile","\u0080":"Control","\u00f6":"Umlaut","<\/script>":"Browser"}',
  '[5.0,-0.0,-0,0.000001,0.0000015,18446744073709552000.0,1e20,1e-7,1.5,1e21,5e-324,1.7976931348623157e308,-2.2250738585072014e-308,9007199254740993,1e-400,1e23,-8.96e24,5.684341886080802e-14,9007199254740996,1.0]',
  ' { "b" : [ ] , "a" : { } } ', '"\b\f\t\u001f\u007f"']) j;

-- Each line: refused for its reason.
CREATE FUNCTION pg_temp.reason(p_json text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE v_detail text;
BEGIN
  PERFORM synchro._json_strict(p_json);
  RETURN 'accepted';
EXCEPTION WHEN SQLSTATE 'SY001' THEN
  GET STACKED DIAGNOSTICS v_detail = PG_EXCEPTION_DETAIL;
  RETURN v_detail;
END $$;
SELECT j, pg_temp.reason(j) FROM unnest(ARRAY[
  '{"a":1,"\u0061":2}', '[{"x":{"a":1,"a":1}}]', '"\u0000"', '{"\u0000":1}', '"\ud800"', '"\ud800x"', '"\ud800\u0041"', '"\udc00"', '"\ufdd0"', '"\ud83f\udffe"',
  U&'"\FFFE"', '1e309', '-1e309', '01', '1.', '.5', '+1', '1e', '-', '0x1', 'NaN', 'Infinity', '', ' ', 'tru', 'nullx', '[1,]', '[,1]', '{"a":1,}',
  '{a:1}', '{"a" 1}', '{"a":1 "b":2}', '[1 2]', '"a', '"\x"', '"\u12"', '[', '{', '{"a"', '[]]', '1 2', E'"a\tb"', '''a''']) WITH ORDINALITY u(j, n) ORDER BY n;
SELECT pg_temp.reason(repeat('[', 1000) || repeat(']', 1000)) AS deep, pg_temp.reason(repeat('[', 1001) || repeat(']', 1001)) AS deeper,
       pg_temp.reason(repeat('[', 1000000)) AS deepest;
SELECT pg_temp.reason(j) FROM unnest(ARRAY['null', '-0', '9007199254740993', '"\ud83d\ude00"', '{"":{}}', '[[],[]]']) j;
DROP FUNCTION pg_temp.reason(text);
