-- A push right behind direct writes: the version that it compares with is the one that capture gives the row.
SET client_min_messages = warning;
CREATE ROLE todo IN ROLE synchro_operator;
CREATE SCHEMA todo AUTHORIZATION todo;
SET SESSION AUTHORIZATION todo;
BEGIN;
CREATE TABLE todo.item (id int PRIMARY KEY, owner text NOT NULL DEFAULT synchro.synchro_subject(), title text NOT NULL);
ALTER TABLE todo.item ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_items ON todo.item TO synchro_writer USING (owner = (SELECT synchro.synchro_subject()));
GRANT USAGE ON SCHEMA todo TO synchro_owner, synchro_worker, synchro_writer;
GRANT SELECT ON todo.item TO synchro_owner, synchro_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON todo.item TO synchro_writer;
SELECT synchro.synchro_prepare_projection_view('todo.item', 'todo_item', '{id,owner}');
CREATE FUNCTION todo.item_scopes(p_row_key int) RETURNS SETOF text LANGUAGE sql STABLE
SET search_path = pg_catalog, synchro BEGIN ATOMIC
  SELECT 'user:' || i.owner FROM synchro_projection.todo_item i WHERE i.id = p_row_key AND i.owner IS NOT NULL;
END;
REVOKE EXECUTE ON FUNCTION todo.item_scopes(int) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION todo.item_scopes(int) TO synchro_worker;
SELECT synchro.synchro_register_table('todo.item', 'todo.item_scopes');
COMMIT;
RESET SESSION AUTHORIZATION;
INSERT INTO synchro.client (client_id, user_id) VALUES (md5('a client')::uuid, 'ada');
-- One mutation; returns its code, or "applied", and the version in its outcome.
CREATE FUNCTION todo.push(p_batch text, p_op text, p_id int, p_base text, p_title text, OUT code text, OUT version text) LANGUAGE plpgsql AS $$
DECLARE
  v_schema jsonb;
  v_key    text := (SELECT field_id FROM synchro.captured_column WHERE column_name = 'id');
  v_title  text := (SELECT field_id FROM synchro.captured_column WHERE column_name = 'title');
  v_body   jsonb;
BEGIN
  SELECT jsonb_build_object('version', m.schema_version, 'hash', m.schema_hash) INTO v_schema
    FROM synchro.progress JOIN synchro.manifest m USING (schema_version);
  SELECT body::jsonb INTO v_body FROM synchro.synchro_push('ada', jsonb_build_object('client_id', md5('a client')::uuid,
    'client_generation', 1, 'batch_id', md5(p_batch)::uuid, 'schema', v_schema, 'mutations', jsonb_build_array(jsonb_strip_nulls(
      jsonb_build_object('mutation_id', md5(p_batch)::uuid, 'table', (SELECT table_id FROM synchro.relation), 'op', p_op,
        'pk', jsonb_build_object(v_key, p_id), 'base_version', p_base, 'authored_schema', v_schema,
        'client_version', '2026-01-01T00:00:00.000000Z', 'columns', jsonb_build_object(v_title, p_title)))))::text);
  code := coalesce(v_body->'error'->>'code', v_body->'rejected'->0->>'code', 'applied');
  version := coalesce(v_body->'rejected'->0, v_body->'accepted'->0)->>'server_version';
END $$;
CREATE PROCEDURE todo.activated() LANGUAGE plpgsql AS $$
BEGIN
  WHILE (SELECT registry_generation FROM synchro.progress) = 1 LOOP COMMIT; PERFORM pg_sleep(0.01); END LOOP;
END $$;
CALL todo.activated();
-- The table is written, and at once pushed to, again and again; every push but the stale one must succeed.
CREATE PROCEDURE todo.run(p_rounds int) LANGUAGE plpgsql AS $$
DECLARE
  r record;
  v record;
BEGIN
  FOR i IN 1 .. p_rounds LOOP
    INSERT INTO todo.item VALUES (i, 'ada', 'direct');
    COMMIT;
    SELECT * INTO r FROM todo.push('insert' || i, 'insert', i, NULL, 'pushed');
    COMMIT;
    ASSERT r.code = 'row_already_exists', r.code;
    SELECT * INTO v FROM todo.push('update' || i, 'update', i, r.version, 'pushed');
    COMMIT;
    ASSERT v.code = 'applied' AND v.version <> r.version, v.code;
    UPDATE todo.item SET title = 'direct again' WHERE id = i;
    COMMIT;
    SELECT * INTO r FROM todo.push('stale' || i, 'update', i, v.version, 'stale');
    COMMIT;
    ASSERT r.code = 'version_conflict' AND r.version <> v.version, r.code;
    SELECT * INTO v FROM todo.push('again' || i, 'update', i, r.version, 'again');
    COMMIT;
    ASSERT v.code = 'applied', v.code;
    SELECT * INTO r FROM todo.push('chain' || i, 'update', i, v.version, 'chain');
    COMMIT;
    ASSERT r.code = 'applied', r.code;
  END LOOP;
END $$;
CALL todo.run(50);
SELECT title, count(*) FROM todo.item GROUP BY title;
-- Once everything is materialized, the projection has the versions that the last pushes told.
CREATE PROCEDURE todo.settled() LANGUAGE plpgsql AS $$
BEGIN
  WHILE EXISTS (SELECT FROM synchro.client c LEFT JOIN synchro.client_materialized m USING (client_no)
                 WHERE c.accepted_write_epoch > coalesce(m.write_epoch, 0)) LOOP
    COMMIT;
    PERFORM pg_sleep(0.01);
  END LOOP;
END $$;
CALL todo.settled();
SELECT accepted_write_epoch FROM synchro.client;
SELECT count(*) AS versions FROM synchro.push_mutation m
  JOIN synchro.relation l ON true JOIN synchro.active_registration a USING (rel_no),
  LATERAL (SELECT query_to_xml(format('SELECT server_version FROM synchro_data.r_%s', l.rel_no), true, true, '')::text AS x) p
 WHERE m.accepted AND p.x LIKE '%' || (m.outcome::json->>'server_version') || '%';
