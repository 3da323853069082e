-- Code of the application reaches nothing of the extension during a push, and nobody but the adapter may push.
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set fixture :abs_srcdir /fixtures/push.sql
\i :fixture
\set ECHO all
SET ROLE shop_owner;
CREATE TABLE shop.attack (id int PRIMARY KEY, code text);
GRANT ALL ON shop.attack TO synchro_writer;
GRANT SELECT ON shop.attack TO synchro_owner;
CREATE FUNCTION shop.attack() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.code IS NOT NULL THEN EXECUTE NEW.code; END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER attack BEFORE INSERT ON shop.attack FOR EACH ROW EXECUTE FUNCTION shop.attack();
CREATE FUNCTION shop.later() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO shop.log (line) VALUES ('ran as ' || current_user);
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER later AFTER INSERT ON shop.folder DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION shop.later();
-- makes its own constraint deferred again while the extension settles constraints
CREATE FUNCTION shop.again() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  SET CONSTRAINTS ALL DEFERRED;
  INSERT INTO shop.folder VALUES (NEW.id, 'ann');
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER again AFTER INSERT ON shop.task DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION shop.again();
CREATE FUNCTION shop.evil() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  RAISE WARNING 'evil ran as %', current_user;
  RETURN 1;
END $$;
RESET ROLE;
SELECT pt.register('shop.attack', 'enabled') \g /dev/null
CREATE FUNCTION pt.attack(p_code text) RETURNS TABLE (code text, message text) LANGUAGE sql VOLATILE AS $$
  SELECT p.code, p.message FROM pt.push('ann', p_code, pt.m(p_code, 'insert', 'shop.attack', to_json(hashtext(p_code)), json_build_object('code', p_code))) p
$$;
-- tables, functions and schemas of the extension
SELECT * FROM pt.attack('SELECT * FROM synchro.client');
SELECT * FROM pt.attack('SELECT * FROM synchro.secret_key');
SELECT * FROM pt.attack('UPDATE synchro.push_fence SET server_version = ''x''');
SELECT * FROM pt.attack('DELETE FROM synchro.tombstone');
SELECT * FROM pt.attack('SELECT * FROM synchro.active_registration');
SELECT * FROM pt.attack('SELECT * FROM synchro_data.r_1');
SELECT * FROM pt.attack('GRANT ALL ON synchro.client TO shop_owner');
SELECT * FROM pt.attack('SELECT synchro.synchro_push(''bob'', ''{}'')');
SELECT * FROM pt.attack('SELECT synchro._push_context(1, ''bob'', NULL)');
SELECT * FROM pt.attack('SELECT synchro._new_version()');
SELECT * FROM pt.attack('CREATE TABLE synchro.x (a int)');
SELECT * FROM pt.attack('SELECT synchro.synchro_subject()');
-- another role
SELECT * FROM pt.attack('SET ROLE postgres');
SELECT * FROM pt.attack('RESET ROLE');
SELECT * FROM pt.attack('SET SESSION AUTHORIZATION postgres');
-- nor is the transaction the application's
\set VERBOSITY sqlstate
SELECT * FROM pt.attack('COMMIT');
\set VERBOSITY default
-- deferred triggers run inside their mutation, as the writer
SELECT list, code FROM pt.push('ann', 'd1', pt.m('d1', 'insert', 'shop.folder', '1', '{"owner": "ann"}'));
SELECT line FROM shop.log;
-- what would run at the commit, as the adapter, fails the push
\set VERBOSITY terse
SELECT list, code FROM pt.push('ann', 'd2', pt.m('d2', 'insert', 'shop.task', '"2"', '{}'));
SELECT * FROM pt.attack('DECLARE c CURSOR WITH HOLD FOR SELECT shop.evil()');
\set VERBOSITY default
SELECT count(*) FROM shop.task;
-- who may call what
SELECT r AS role, has_function_privilege(r, f, 'EXECUTE') AS may, f::regproc AS function
  FROM unnest('{public,synchro_adapter,synchro_operator,synchro_monitor,synchro_seed,synchro_worker,synchro_writer}'::text[]) r,
       unnest('{synchro.synchro_push}'::regproc[]) f ORDER BY may, r COLLATE "C";
SELECT p.proname FROM pg_proc p, unnest('{public,synchro_adapter,synchro_operator,synchro_monitor,synchro_seed,synchro_worker,synchro_writer}'::text[]) r
 WHERE p.pronamespace = 'synchro'::regnamespace AND p.proname LIKE '\_push%' AND has_function_privilege(r, p.oid, 'EXECUTE');
SELECT proname, prosecdef, proowner::regrole FROM pg_proc WHERE proname = 'synchro_push';
-- the session belongs to the next user
\set VERBOSITY terse
SELECT * FROM pt.attack('PREPARE p AS SELECT shop.evil()');
SELECT * FROM pt.attack('DEALLOCATE ALL');
SELECT * FROM pt.attack('LISTEN a');
SELECT * FROM pt.attack('DISCARD PLANS');
SELECT * FROM pt.attack('CREATE TEMP TABLE t (a int) ON COMMIT DROP');
SELECT * FROM pt.attack('CREATE DOMAIN pg_temp.text AS int');
SELECT * FROM pt.attack('SET work_mem = 64');
SHOW work_mem;
SELECT count(*) FROM pg_prepared_statements;
-- the executor relies on no shape that it has not seen
SELECT * FROM synchro._push_read('u', '[]');
SELECT * FROM synchro._push_read('u', '{"client_id": "c", "mutations": [{}]}');
SELECT * FROM synchro._push_shapes('{"client_id": "c", "mutations": [{}]}');
SELECT * FROM synchro._push_apply(NULL, '', NULL, 1, false, '{"client_id": "c", "mutations": []}', '{}');
SELECT * FROM synchro._push_apply(1, '', NULL, 1, false, '{"client_id": "c", "mutations": [{"op": "insert"}]}', '{1}');
\set VERBOSITY default
