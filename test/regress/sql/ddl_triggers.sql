-- Triggers and publication: made with rights that neither the owner nor synchro_owner has, and without code of the application.
SET client_min_messages = warning;
CREATE SCHEMA ddl;
CREATE ROLE ddl_app;
GRANT ALL ON SCHEMA ddl TO ddl_app;
-- Would run as whoever changes the table: must never see a superuser.
CREATE FUNCTION ddl.spy() RETURNS event_trigger LANGUAGE plpgsql AS $$BEGIN RAISE WARNING '% by %', tg_tag, current_user; END$$;
SET ROLE ddl_app;
CREATE TABLE ddl.t ("Id" int PRIMARY KEY, a text);
CREATE TABLE ddl.heir () INHERITS (ddl.t);
RESET ROLE;
SELECT 'ddl.t'::regclass::oid AS t \gset
CREATE EVENT TRIGGER ddl_spy ON ddl_command_start EXECUTE FUNCTION ddl.spy();
CREATE EVENT TRIGGER ddl_spy_drop ON sql_drop EXECUTE FUNCTION ddl.spy();
SET ROLE synchro_owner;
BEGIN;
SELECT synchro._lock_relation(:t);
SELECT mode FROM pg_locks WHERE relation = :t AND pid = pg_backend_pid();
COMMIT;
SELECT synchro._install_triggers(900101, :t, '00000000-0000-4000-8000-00000000000a', '00000000-0000-4000-8000-00000000000b', 's', 1::smallint, '{1,2}', '{2}');
SELECT pg_get_triggerdef(oid), tgenabled FROM pg_trigger WHERE tgrelid = :t ORDER BY tgname;
-- Again, with other columns: replaced.
SELECT synchro._install_triggers(900101, :t, '00000000-0000-4000-8000-00000000000a', NULL, 'd', 1::smallint, '{1}', '{}');
SELECT pg_get_triggerdef(oid), tgenabled FROM pg_trigger WHERE tgrelid = :t AND tgname = 'synchro_fence';
SELECT synchro._install_triggers(900101, :t, '00000000-0000-4000-8000-00000000000a', NULL, 's', 1::smallint, '{1}', '{}');
SELECT synchro._install_triggers(900101, :t, '00000000-0000-4000-8000-00000000000a', NULL, 'x', 1::smallint, '{1}', '{}');
RESET ROLE;
SELECT current_user = session_user AS nothing_left;

-- A trigger that is not ours keeps its name.
SET ROLE synchro_owner;
SELECT synchro._remove_triggers(:t), synchro._remove_triggers(:t), synchro._remove_triggers(0);
RESET ROLE;
DROP EVENT TRIGGER ddl_spy;
DROP EVENT TRIGGER ddl_spy_drop;
CREATE FUNCTION ddl.own() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$;
CREATE TRIGGER synchro_fence AFTER INSERT ON ddl.t FOR EACH ROW EXECUTE FUNCTION ddl.own();
SELECT synchro._remove_triggers(:t);
SELECT tgname FROM pg_trigger WHERE tgrelid = :t;
DROP TRIGGER synchro_fence ON ddl.t;

-- Publication: in a transaction that ends without trace.
BEGIN;
DO $$BEGIN EXECUTE format('DROP PUBLICATION IF EXISTS %I', current_setting('synchro.publication_name')); END$$;
SET ROLE synchro_owner;
SELECT synchro._publish(:t), synchro._publish(:t);
SELECT pubowner::regrole, puballtables, pubinsert, pubupdate, pubdelete, pubtruncate, pubviaroot FROM pg_publication WHERE pubname = current_setting('synchro.publication_name');
-- Exactly the table: not those that inherit from it.
SELECT prrelid::regclass FROM pg_publication_rel;
SELECT synchro._unpublish(:t), synchro._unpublish(:t), synchro._unpublish(0);
SELECT count(*) FROM pg_publication_rel;
RESET ROLE;
-- One that someone else made.
CREATE FUNCTION ddl.try(p_sql text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('DROP PUBLICATION IF EXISTS %I', current_setting('synchro.publication_name'));
  EXECUTE format(p_sql, current_setting('synchro.publication_name'));
  EXECUTE format('ALTER PUBLICATION %I OWNER TO %I', current_setting('synchro.publication_name'),
                 CASE WHEN p_sql LIKE '%foreign%' THEN current_user ELSE 'synchro_owner' END);
  PERFORM synchro._publish('ddl.t'::regclass);
  RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
  RETURN SQLSTATE || ' ' || SQLERRM;
END
$$;
ALTER ROLE synchro_owner SUPERUSER;                -- may own such publications
SELECT ddl.try('CREATE PUBLICATION %I FOR ALL TABLES');
SELECT ddl.try('CREATE PUBLICATION %I FOR TABLES IN SCHEMA ddl');
ALTER ROLE synchro_owner NOSUPERUSER;
SELECT ddl.try('CREATE PUBLICATION %I WITH (publish = ''insert'')');
SELECT ddl.try('CREATE PUBLICATION %I WITH (publish_via_partition_root = false)');
SELECT ddl.try('CREATE PUBLICATION %I WITH (publish_via_partition_root = true) -- foreign');
SELECT ddl.try('CREATE PUBLICATION %I WITH (publish_via_partition_root = true)');
ROLLBACK;

-- Who may call them.
SELECT f::regprocedure, array_agg(r ORDER BY r) FILTER (WHERE has_function_privilege(r, f, 'EXECUTE')) AS allowed
  FROM unnest(ARRAY['synchro._install_triggers(int,oid,uuid,uuid,"char",smallint,smallint[],smallint[],smallint[])', 'synchro._remove_triggers(oid)', 'synchro._publish(oid)',
                    'synchro._unpublish(oid)', 'synchro._baseline(int,bigint,name)', 'synchro._lock_relation(oid)', 'synchro._make_twin(oid,name)',
                    'synchro._evaluate_membership(int,bigint,text[])', 'synchro._evaluate_assignment(text)']::regprocedure[]) f,
       unnest(ARRAY['synchro_worker', 'synchro_operator', 'synchro_adapter', 'synchro_writer', 'ddl_app']) r GROUP BY f ORDER BY f::text;
DROP SCHEMA ddl CASCADE;
DROP ROLE ddl_app;
