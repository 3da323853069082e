CREATE ROLE todo LOGIN IN ROLE synchro_operator;         -- owns the table, may register it
CREATE SCHEMA todo AUTHORIZATION todo;
SET SESSION AUTHORIZATION todo;
BEGIN;
CREATE TABLE todo.item (id uuid PRIMARY KEY, owner text NOT NULL DEFAULT synchro.synchro_subject(), title text NOT NULL, done boolean NOT NULL);
ALTER TABLE todo.item ENABLE ROW LEVEL SECURITY;         -- what pushed writes may do, by the pushing user
CREATE POLICY own_items ON todo.item TO synchro_writer
  USING (owner = (SELECT synchro.synchro_subject())) WITH CHECK (owner = (SELECT synchro.synchro_subject()));
GRANT USAGE ON SCHEMA todo TO synchro_owner, synchro_worker, synchro_writer;
GRANT SELECT ON todo.item TO synchro_owner, synchro_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON todo.item TO synchro_writer;

-- Which scopes hold a row: here the one of the user who owns it. Every user has the scope user:<user id>.
SELECT synchro.synchro_prepare_projection_view('todo.item', 'todo_item', '{id,owner}');
CREATE FUNCTION todo.item_scopes(p_row_key uuid) RETURNS SETOF text LANGUAGE sql STABLE
SET search_path = pg_catalog, synchro BEGIN ATOMIC
  SELECT 'user:' || i.owner FROM synchro_projection.todo_item i WHERE i.id = p_row_key AND i.owner IS NOT NULL;
END;
REVOKE EXECUTE ON FUNCTION todo.item_scopes(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION todo.item_scopes(uuid) TO synchro_worker;
SELECT synchro.synchro_register_table('todo.item', 'todo.item_scopes');
COMMIT;
RESET SESSION AUTHORIZATION;
