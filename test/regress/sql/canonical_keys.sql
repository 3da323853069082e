-- Key text, key octets and key JSON.
SELECT k, synchro._key_bytes('string', k) AS octets, synchro._key_json('string', synchro._key_bytes('string', k)) AS json
FROM unnest(ARRAY['', 'a', 'ключ', '"q"', E'line\nfeed']) k;
SELECT n, substr(synchro._key_bytes('string', repeat('x', n)), 1, 5) AS head, synchro._key_text('string', synchro._key_bytes('string', repeat('x', n))) = repeat('x', n) AS back
FROM unnest(ARRAY[127, 128, 255, 256, 65535, 65536, 16777216]) n;
SELECT k, synchro._key_bytes('int', k) AS octets, synchro._key_text('int', synchro._key_bytes('int', k)) = k AS back, synchro._key_json('int', synchro._key_bytes('int', k)) AS json
FROM unnest(ARRAY['0', '-1', '2147483647', '-2147483648']) k;
SELECT k, synchro._key_bytes('int64', k) AS octets, synchro._key_text('int64', synchro._key_bytes('int64', k)) = k AS back, synchro._key_json('int64', synchro._key_bytes('int64', k)) AS json
FROM unnest(ARRAY['0', '-1', '9223372036854775807', '-9223372036854775808']) k;

-- What is no key is refused.
CREATE FUNCTION pg_temp.refused(p_call text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE 'SELECT synchro.' || p_call;
  RETURN 'accepted';
EXCEPTION WHEN invalid_parameter_value THEN
  RETURN SQLERRM;
END $$;
SELECT c, pg_temp.refused(c) FROM unnest(ARRAY[
  $$_key_bytes('int', '2147483648')$$, $$_key_bytes('int', '-2147483649')$$, $$_key_bytes('int', '-0')$$, $$_key_bytes('int', '01')$$, $$_key_bytes('int', '+1')$$,
  $$_key_bytes('int', '')$$, $$_key_bytes('int', '-')$$, $$_key_bytes('int', ' 1')$$, $$_key_bytes('int64', '9223372036854775808')$$, $$_key_bytes('int64', '-9223372036854775809')$$,
  $$_key_bytes('int64', '99999999999999999999')$$, $$_key_bytes('int64', '1.0')$$, $$_key_bytes('string', U&'\FFFE')$$, $$_key_bytes('bytes', '1')$$,
  $$_key_text('int', '\x000000')$$, $$_key_text('int64', '\x00000000')$$, $$_key_text('string', '\x')$$, $$_key_text('string', '\x0261')$$, $$_key_text('string', '\x016161')$$,
  $$_key_text('string', '\x81')$$, $$_key_text('string', '\x810161')$$, $$_key_text('string', '\x820001')$$, $$_key_text('string', '\x80')$$, $$_key_text('string', '\xff')$$]) WITH ORDINALITY u(c, n) ORDER BY n;
DROP FUNCTION pg_temp.refused(text);

-- The octets sort like the identities, whose length prefix comes first.
SELECT string_agg(left(k, 3), ' ' ORDER BY synchro._key_bytes('string', k)) AS strings FROM unnest(ARRAY['b', 'aa', '', 'ab', 'a', repeat('z', 128), repeat('A', 129), repeat('y', 127), 'é']) k;
SELECT string_agg(k, ' ' ORDER BY synchro._key_bytes('int64', k)) AS numbers FROM unnest(ARRAY['-1', '0', '1', '256', '255', '-9223372036854775808', '9223372036854775807']) k;
