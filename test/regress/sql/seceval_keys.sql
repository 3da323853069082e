-- Keys of every key type reach the function as what they are, in both forms of evaluation; bodies of every shape.
\set SHOW_CONTEXT never
BEGIN;
SET LOCAL client_min_messages = warning;
SET LOCAL synchro.ddl_guard = off;
CREATE SCHEMA sk;
CREATE FUNCTION sk.eval(p_type regtype, p_body text, p_twin boolean, p_keys text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_rel_no int := nextval('sk.rel_no');
  v_f      regprocedure;
BEGIN
  EXECUTE format('CREATE FUNCTION sk.f(p_row_key %s) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro %s', p_type, p_body);
  SELECT oid INTO v_f FROM pg_proc WHERE proname = 'f' AND pronamespace = 'sk'::regnamespace;
  INSERT INTO synchro.relation (rel_no, physical_schema, physical_relation, relation_oid) OVERRIDING SYSTEM VALUE VALUES (v_rel_no, 'sk', 't' || v_rel_no, 4000000000 + v_rel_no);
  INSERT INTO synchro.registration (generation, rel_no, since, kind, composition, push_policy, key_column, key_attnum, key_type, pk_type, membership_function,
                                    membership_twin, membership_hash, max_scope_fanout, sync_columns, text_columns)
  SELECT max(generation), v_rel_no, 1, 'synced', 'multi_scope', 'read_only', 'id', 1, p_type, 'string', v_f, CASE WHEN p_twin THEN synchro._make_twin(v_f, 'sk_twin') END,
         synchro._definition_hash(v_f), 3, '{}', '{}' FROM synchro.registry_generation;
  RETURN (SELECT string_agg(ord || ' ' || scope_id, ', ') FROM synchro._evaluate_membership(v_rel_no, (SELECT max(generation) FROM synchro.registry_generation), p_keys));
END
$$;
CREATE FUNCTION sk.both(p_type regtype, p_body text, VARIADIC p_keys text[]) RETURNS TABLE (joined text, same_by_calls boolean) LANGUAGE plpgsql AS $$
BEGIN
  joined := sk.eval(p_type, p_body, true, p_keys);
  EXECUTE 'DROP FUNCTION sk.f';
  same_by_calls := joined IS NOT DISTINCT FROM sk.eval(p_type, p_body, false, p_keys);
  EXECUTE 'DROP FUNCTION sk.f';
  RETURN NEXT;
END
$$;
CREATE SEQUENCE sk.rel_no START 9100001;
SELECT t, b.* FROM (VALUES ('smallint', '{-32768,7}'), ('int', '{-1,2147483647}'), ('bigint', '{-9223372036854775808,0}'), ('text', '{"","a b\"c",é}'), ('varchar', '{"  x ",y}'),
    ('character', '{"abc  ",abcdefgh}'), ('uuid', '{0A000000-0000-4000-8000-00000000000a,0b000000-0000-4000-8000-00000000000b}'), ('inet', '{10.0.0.1/8,::1}'), ('cidr', '{10.0.0.0/8}'),
    ('macaddr', '{08:00:2b:01:02:03}'), ('macaddr8', '{08:00:2b:01:02:03:04:05}'), ('int4range', '{"[1,5)",empty}'), ('int8range', '{"[1,)"}'), ('numrange', '{"[1.50,2]"}'),
    ('int4multirange', '{"{[1,2),[5,6)}"}'), ('int8multirange', '{"{}"}'), ('nummultirange', '{"{[1.0,2]}"}')) v(t, keys),
  LATERAL sk.both(t::regtype, 'BEGIN ATOMIC SELECT format(''<%s>'', p_row_key); END', VARIADIC keys::text[]) b;
-- Bodies: RETURN, several statements, nothing at all, an argument that is used often.
SELECT * FROM sk.both('int', 'RETURN ''n:'' || p_row_key', '1', '2');
SELECT * FROM sk.both('int', 'BEGIN ATOMIC SELECT ''ignored''; SELECT ''n:'' || p_row_key; END', '1');
SELECT * FROM sk.both('int', 'BEGIN ATOMIC SELECT ''x'' WHERE false; END', '1');
SELECT * FROM sk.both('int', 'BEGIN ATOMIC SELECT ''n:'' || (p_row_key + i) FROM generate_series(p_row_key, p_row_key + 1) i WHERE p_row_key > 1 ORDER BY p_row_key, i DESC; END', '1', '5');
-- Nothing of the evaluation stays in the session, also when it fails.
SAVEPOINT a;
SET LOCAL search_path = sk, public;
SELECT sk.both('int', 'RETURN (1 / p_row_key)::text', '0');
ROLLBACK TO a;
SELECT current_setting('plan_cache_mode'), current_setting('enable_seqscan'), current_user = session_user AS back;
ROLLBACK;
