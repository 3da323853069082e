-- What is stored of generations of the registry, and of rebuilds, goes when nothing can ask for it any more, and not before.
BEGIN ISOLATION LEVEL REPEATABLE READ;
\getenv inputs PG_ABS_SRCDIR
\set fixture :inputs '/fixtures/endpoints.sql'
\set ECHO none
\i :fixture
\set ECHO all
SET LOCAL search_path = ep, pg_catalog;
-- Rule number n of table note, which was registered with the function's definition d; its copy.
CREATE FUNCTION ep.member(uuid) RETURNS SETOF text LANGUAGE sql STABLE AS $$ SELECT 'one' $$;
CREATE FUNCTION ep.impact(jsonb, jsonb) RETURNS SETOF synchro.synchro_row_ref LANGUAGE sql STABLE AS $$ SELECT NULL, 'one', NULL $$;
CREATE FUNCTION ep.definition(p_word text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
  EXECUTE format('CREATE OR REPLACE FUNCTION ep.member(uuid) RETURNS SETOF text LANGUAGE sql STABLE AS %L', format('SELECT %L', p_word));
  EXECUTE format('CREATE OR REPLACE FUNCTION ep.impact(jsonb, jsonb) RETURNS SETOF synchro.synchro_row_ref LANGUAGE sql STABLE AS %L', format('SELECT NULL, %L, NULL', p_word));
END $$;
-- A generation in which the functions are registered as they are now. p_copy: number of its copies. p_since: as registration.since.
CREATE FUNCTION ep.generation(p_number bigint, p_copy int, p_since bigint DEFAULT 1, p_rejected boolean DEFAULT false) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN
  EXECUTE format('CREATE OR REPLACE FUNCTION synchro_twin.m_%s() RETURNS int LANGUAGE sql AS ''SELECT 1''', p_copy);
  EXECUTE format('CREATE OR REPLACE FUNCTION synchro_twin.i_%s() RETURNS int LANGUAGE sql AS ''SELECT 1''', p_copy);
  INSERT INTO synchro.registry_generation (generation, schema_version, actor) VALUES (p_number, 9001, 'ep');
  INSERT INTO synchro.registration (generation, rel_no, since, kind, composition, push_policy, key_column, key_attnum, key_type, pk_type, membership_function, membership_twin,
    membership_hash, max_scope_fanout, sync_columns, text_columns, twin_hash)
  VALUES (p_number, 8000001, p_since, 'synced', 'multi_scope', 'enabled', 'id', 1, 'uuid'::regtype, 'string', 'ep.member(uuid)'::regprocedure, format('synchro_twin.m_%s()', p_copy)::regprocedure,
    synchro._definition_hash('ep.member(uuid)'::regprocedure), 8, '{id}', '{}', 't');
  INSERT INTO synchro.membership_dependency (generation, target_rel_no, source_rel_no, impact_function, impact_twin, impact_hash, source_attnums, max_impact_rows)
  VALUES (p_number, 8000001, 8000002, 'ep.impact(jsonb,jsonb)'::regprocedure, format('synchro_twin.i_%s()', p_copy)::regprocedure,
    synchro._definition_hash('ep.impact(jsonb,jsonb)'::regprocedure), '{1}', 10);
  INSERT INTO synchro.declared_scope VALUES (p_number, 8000001, 's');
  IF p_rejected THEN
    INSERT INTO synchro.backfill (generation, state, reason) VALUES (p_number, 'rejected', 'scope_evaluation_failed');
  END IF;
  RETURN p_number;
END $$;
CREATE FUNCTION ep.active(p_number bigint) RETURNS void LANGUAGE sql AS $$ UPDATE synchro.progress SET registry_generation = p_number $$;
CREATE FUNCTION ep.retire() RETURNS bigint LANGUAGE plpgsql AS $$ DECLARE v_all bigint := 0; v_now bigint; BEGIN
  LOOP v_now := synchro._retire_configurations(10000); v_all := v_all + v_now; EXIT WHEN v_now = 0; END LOOP; RETURN v_all; END $$;
-- What is left: generations, and those with registrations, dependencies, declared scopes, rejections; copies.
CREATE FUNCTION ep.stored() RETURNS text LANGUAGE sql AS $$ SELECT concat_ws(' | ',
  (SELECT string_agg((generation - 9000)::text, ' ' ORDER BY generation) FROM synchro.registry_generation),
  'rules ' || (SELECT string_agg((generation - 9000)::text, ' ' ORDER BY generation) FROM synchro.registration),
  'deps ' || (SELECT string_agg((generation - 9000)::text, ' ' ORDER BY generation) FROM synchro.membership_dependency),
  'declared ' || (SELECT string_agg((generation - 9000)::text, ' ' ORDER BY generation) FROM synchro.declared_scope),
  'rejected ' || (SELECT string_agg((generation - 9000)::text, ' ' ORDER BY generation) FROM synchro.backfill),
  'copies ' || (SELECT string_agg(proname, ' ' ORDER BY proname) FROM pg_proc WHERE pronamespace = 'synchro_twin'::regnamespace)) $$;
\pset tuples_only on
\pset format unaligned
-- Of all others of this database nothing is left.
INSERT INTO synchro.registry_generation (generation, schema_version, actor) VALUES (9000, 9001, 'ep');
SELECT ep.active(9000), ep.retire() >= 0;
SELECT ep.stored();

-- The active one and those to come are whole, and what the active one declared has been used up.
SELECT ep.generation(9001, 1), ep.generation(9002, 2), ep.generation(9003, 2), ep.generation(9004, 4);
SELECT ep.active(9003), ep.retire();
SELECT ep.stored();
SELECT ep.retire();
-- In batches: of each kind as many as are asked for.
SAVEPOINT s;
SELECT ep.generation(9005, 5), ep.generation(9006, 6), ep.active(9006);
SELECT synchro._retire_configurations(1), ep.stored();
SELECT synchro._retire_configurations(1), ep.stored();
SELECT ep.retire(), ep.stored();
ROLLBACK TO s;
-- A rejected generation is listed until a later one is active.
SELECT ep.active(9004), ep.definition('two'), ep.generation(9005, 5, 1, true), ep.definition('one'), ep.retire(), ep.stored();
SELECT ep.generation(9006, 4), ep.active(9006), ep.retire(), ep.stored();
ROLLBACK TO s;
-- Its definition is kept as long as it is the present one of functions that the rule at work was registered with as they were: once.
SELECT ep.definition('two'), ep.generation(9005, 5, 1, true), ep.generation(9006, 6, 1, true), ep.active(9004), ep.retire(), ep.stored();
SELECT ep.definition('one'), ep.generation(9007, 4), ep.active(9007), ep.definition('two'), ep.retire(), ep.stored();
SAVEPOINT kept;
SELECT ep.definition('three'), ep.retire(), ep.stored();
ROLLBACK TO kept;
SELECT ep.generation(9008, 8), ep.retire(), ep.stored();
SELECT ep.active(9008), ep.retire(), ep.stored();
ROLLBACK TO kept;
DELETE FROM synchro.registration WHERE generation = 9007;
DELETE FROM synchro.membership_dependency WHERE generation = 9007;
SELECT ep.retire(), ep.stored();
ROLLBACK TO s;
-- While one that was built on it may come, it is known as rejected: that one is rejected for it.
SELECT ep.generation(9005, 5, 1, true), ep.generation(9006, 6, 9005), ep.active(9006), ep.retire(), ep.stored();
SELECT synchro._built_on_rejected(9006);
UPDATE synchro.registration SET since = 1 WHERE generation = 9006;
SELECT ep.retire(), ep.stored();
ROLLBACK TO s;
-- A copy that something depends on stays until that is gone.
CREATE VIEW ep.uses AS SELECT synchro_twin.m_2();
SELECT ep.active(9004), ep.retire(), ep.stored();
DROP VIEW ep.uses;
SELECT ep.retire(), ep.stored();
ROLLBACK TO s;
-- It is part of what compaction tidies.
SELECT ep.active(9004), synchro._tidy(now(), 10000) > 0, ep.stored();
ROLLBACK TO s;

-- Stages of rebuilds serve as long as every generation that they were made under is current.
\pset tuples_only off
SELECT ep.note(1, 'one', '{s,user:u}'), ep.note(2, 'two', '{s,user:u}'), ep.note(3, 'three', '{s,user:u}'), synchro.synchro_register_shared_scope('s'), ep.connect('u-1');
SELECT ep.rebuild('u-1', s, 100) FROM unnest('{s,user:u}'::text[]) s;
CREATE FUNCTION ep.page(p_scope text, p_cursor text) RETURNS text LANGUAGE sql AS $$ SELECT coalesce(r.body ->> 'cursor', r.status || ' ' || (r.body #>> '{error,code}'), 'last')
  FROM ep.call('u-1', 'rebuild', jsonb_build_object('scope', p_scope, 'rebuild_id', '00000000-0000-4000-8000-00000000000' || length(p_scope), 'limit', 1, 'cursor', p_cursor)) r $$;
SELECT ep.page('s', '?') AS shared, ep.page('user:u', '?') AS own \gset
CREATE FUNCTION ep.stages() RETURNS text LANGUAGE sql AS $$ SELECT concat_ws(' ', (SELECT string_agg(scope_id, ',' ORDER BY scope_id) FROM synchro.rebuild_stage), count(*)) FROM synchro.rebuild_session $$;
CREATE FUNCTION ep.tidy() RETURNS text LANGUAGE plpgsql AS $$ BEGIN WHILE synchro._tidy(now() - interval '1 hour', 10000) > 0 LOOP END LOOP; RETURN ep.stages(); END $$;
SELECT ep.tidy();
SAVEPOINT s;
-- Another membership, or retention, of one scope; another manifest; another stream.
UPDATE synchro.scope SET membership_generation = 2 WHERE scope_id = 's';
SELECT ep.tidy(), ep.page('s', :'shared'), ep.page('user:u', :'own') <> :'own' AS goes_on;
ROLLBACK TO s;
UPDATE synchro.scope SET retention_generation = 2 WHERE scope_id = 's';
SELECT ep.tidy(), ep.page('s', :'shared'), ep.page('user:u', :'own') <> :'own' AS goes_on;
ROLLBACK TO s;
SELECT ep.publish(9002, 9001, 'class_2', '{8000001,8000002}'), ep.tidy();
ROLLBACK TO s;
UPDATE synchro.progress SET stream_generation = stream_generation + 1;
SELECT ep.tidy(), ep.page('s', :'shared');
ROLLBACK TO s;
-- What such a rebuild would have needed is not kept: its final cursor cannot come.
CREATE FUNCTION ep.left(p_scope text) RETURNS bigint LANGUAGE sql AS $$ SELECT count(*) FROM synchro.scope_entry JOIN synchro.scope USING (scope_no) WHERE scope_id = p_scope AND state = 'x' $$;
SELECT ep.pull('u-1');
SELECT ep.note(1, 'one', '{user:u}');
SELECT ep.pull('u-1') FROM generate_series(1, 2);
SELECT (synchro._compact_scopes(0, 100)).o_deleted, ep.left('s');
UPDATE synchro.scope SET membership_generation = 2 WHERE scope_id = 's';
SELECT (synchro._compact_scopes(0, 100)).o_deleted, ep.left('s');
ROLLBACK TO s;

-- The last manifest that rematerialized a scope is all that is stored of the steps that did: it answers for every earlier one.
SELECT ep.publish(9002, 9001, 'class_3', '{8000001,8000002}', '{s}'), ep.publish(9003, 9002, 'class_3', '{8000001,8000002}', '{user:u}'), ep.publish(9004, 9003, 'class_3', '{8000001,8000002}', '{s}');
SELECT scope_id, affected_version FROM synchro.scope ORDER BY 1;
SELECT v.version, a.o_action, a.o_affected FROM unnest(ARRAY[9001, 9002, 9003, 9004]) v (version) JOIN synchro.manifest m ON m.schema_version = v.version
  CROSS JOIN LATERAL synchro._schema_action(v.version, m.schema_hash, false, 9004, '{s,user:u}') a ORDER BY 1;
-- Behind a Class 4 step nothing is asked of it.
SELECT ep.publish(9005, 9004, 'class_4', '{8000001}'), ep.publish(9006, 9005, 'class_3', '{8000001}', '{user:u}');
SELECT v.version, a.o_action, a.o_reason, a.o_affected FROM unnest(ARRAY[9001, 9004, 9005, 9006]) v (version) JOIN synchro.manifest m ON m.schema_version = v.version
  CROSS JOIN LATERAL synchro._schema_action(v.version, m.schema_hash, false, 9006, '{s,user:u}') a ORDER BY 1;
ROLLBACK;
