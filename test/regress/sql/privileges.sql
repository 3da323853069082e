-- Who may do what: PUBLIC and a login of no group nothing; each group its own functions; nobody but the owner and the worker reads a table.
SET client_min_messages = warning;
CREATE ROLE privileges_login LOGIN;
CREATE TABLE privileges_note (id int PRIMARY KEY, owner text);
GRANT SELECT ON privileges_note TO synchro_owner, synchro_worker;
SELECT synchro.synchro_prepare_projection_view('public.privileges_note', 'privileges_note', '{id,owner}');
CREATE FUNCTION privileges_scopes(p_row_key int) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
BEGIN ATOMIC SELECT 'user:' || n.owner FROM synchro_projection.privileges_note n WHERE n.id = p_row_key; END;
REVOKE EXECUTE ON FUNCTION privileges_scopes(int) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION privileges_scopes(int) TO synchro_worker;
SELECT synchro.synchro_register_table('public.privileges_note', 'public.privileges_scopes', p_push_policy => 'read_only');

-- Everything in our schemas, with what a registration makes there.
CREATE VIEW privileges_role AS
  SELECT r.oid, r.rolname AS role FROM pg_roles r
   WHERE r.rolname IN ('synchro_writer', 'synchro_adapter', 'synchro_seed', 'synchro_monitor', 'synchro_operator', 'synchro_worker', 'privileges_login')
   UNION ALL SELECT 0, 'public';
CREATE VIEW privileges_held AS
  SELECT role, 'schema ' || n.nspname AS object, p.privilege
    FROM privileges_role r, pg_namespace n, unnest('{USAGE,CREATE}'::text[]) p(privilege)
   WHERE n.nspname LIKE 'synchro%' AND CASE r.oid WHEN 0 THEN has_schema_privilege('public', n.oid, p.privilege) ELSE has_schema_privilege(r.oid, n.oid, p.privilege) END
  UNION ALL
  SELECT role, CASE c.relkind WHEN 'S' THEN 'sequence ' ELSE 'table ' END || c.oid::regclass::text, p.privilege
    FROM privileges_role r, pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace,
         unnest('{SELECT,INSERT,UPDATE,DELETE,TRUNCATE,REFERENCES,TRIGGER}'::text[]) p(privilege)
   WHERE n.nspname LIKE 'synchro%' AND c.relkind IN ('r', 'v', 'p', 'm', 'f')
     AND CASE r.oid WHEN 0 THEN has_table_privilege('public', c.oid, p.privilege) ELSE has_table_privilege(r.oid, c.oid, p.privilege) END
  UNION ALL
  SELECT role, 'column of ' || c.oid::regclass::text, p.privilege
    FROM privileges_role r, pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace, unnest('{SELECT,INSERT,UPDATE,REFERENCES}'::text[]) p(privilege)
   WHERE n.nspname LIKE 'synchro%' AND c.relkind IN ('r', 'v', 'p', 'm', 'f') AND r.oid <> 0 AND NOT has_table_privilege(r.oid, c.oid, p.privilege)
     AND has_any_column_privilege(r.oid, c.oid, p.privilege)
  UNION ALL
  SELECT role, 'sequence ' || c.oid::regclass::text, p.privilege
    FROM privileges_role r, pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace, unnest('{USAGE,SELECT,UPDATE}'::text[]) p(privilege)
   WHERE n.nspname LIKE 'synchro%' AND c.relkind = 'S'
     AND CASE r.oid WHEN 0 THEN has_sequence_privilege('public', c.oid, p.privilege) ELSE has_sequence_privilege(r.oid, c.oid, p.privilege) END
  UNION ALL
  SELECT role, 'function ' || f.oid::regprocedure::text, 'EXECUTE'
    FROM privileges_role r, pg_proc f JOIN pg_namespace n ON n.oid = f.pronamespace
   WHERE n.nspname LIKE 'synchro%'
     AND CASE r.oid WHEN 0 THEN has_function_privilege('public', f.oid, 'EXECUTE') ELSE has_function_privilege(r.oid, f.oid, 'EXECUTE') END
  UNION ALL
  SELECT role, 'type ' || t.oid::regtype::text, 'USAGE'
    FROM privileges_role r, pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
   WHERE n.nspname LIKE 'synchro%' AND t.typcategory <> 'A'
     AND CASE r.oid WHEN 0 THEN has_type_privilege('public', t.oid, 'USAGE') ELSE has_type_privilege(r.oid, t.oid, 'USAGE') END;

-- Nothing for anybody.
SELECT object, privilege FROM privileges_held WHERE role IN ('public', 'privileges_login') ORDER BY 1, 2;
-- Nobody creates in our schemas, and each enters only where it must.
SELECT object, string_agg(role || ' ' || privilege, ', ' ORDER BY role COLLATE "C") FROM privileges_held WHERE object LIKE 'schema %' GROUP BY object ORDER BY object COLLATE "C";
-- Tables and sequences are the owner's and the worker's; an operator writes membership functions over projection views.
SELECT role, object, privilege FROM privileges_held WHERE object ~ '^(table|column of|sequence) ' AND role <> 'synchro_worker' ORDER BY 1, 2, 3;
-- The worker writes capture state only, and never the registry, clients, ledgers or keys; what it reads and calls.
SELECT regexp_replace(object, 'r_\d+', 'r_N') AS object, string_agg(DISTINCT privilege, ' ' ORDER BY privilege) FROM privileges_held
 WHERE object ~ '^(table|column of|sequence) ' AND role = 'synchro_worker' GROUP BY 1 ORDER BY 1;
-- What each group may call.
SELECT role, object FROM privileges_held WHERE object LIKE 'function %' ORDER BY role COLLATE "C", object COLLATE "C";
-- Nobody is a member of another group, none can log in, and the owner is nobody's.
SELECT m.member::regrole, m.roleid::regrole FROM pg_auth_members m
 WHERE m.roleid IN (SELECT oid FROM pg_roles WHERE rolname LIKE 'synchro\_%') AND m.member::regrole::text NOT LIKE 'synchro_worker_%' ORDER BY 1, 2;
SELECT rolname FROM pg_roles WHERE rolname ~ '^synchro_(owner|writer|adapter|seed|monitor|operator|worker)$'
   AND (rolcanlogin OR rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls);
-- Everything belongs to the owner, except the twins of functions, which are their owners'.
SELECT c.oid::regclass FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname LIKE 'synchro%' AND c.relowner <> 'synchro_owner'::regrole;
SELECT f.oid::regprocedure FROM pg_proc f JOIN pg_namespace n ON n.oid = f.pronamespace
 WHERE n.nspname LIKE 'synchro%' AND n.nspname <> 'synchro_twin' AND f.proowner <> 'synchro_owner'::regrole;
-- Privileged functions have a fixed search path that nobody else can write to; one in C names the schema of everything.
SELECT f.oid::regprocedure, f.proconfig FROM pg_proc f
 WHERE f.pronamespace = 'synchro'::regnamespace AND f.prosecdef AND NOT coalesce(f.proconfig @> '{"search_path=pg_catalog, synchro, pg_temp"}', false)
   AND f.oid <> 'synchro.synchro_pull'::regproc;

-- Whatever is not listed above, tried: by every role every table and every function.
CREATE FUNCTION privileges_try(p_role text, p_sql text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('role', p_role, true);
  EXECUTE p_sql;
  RAISE EXCEPTION USING ERRCODE = 'OK000';
EXCEPTION WHEN OTHERS THEN
  RETURN SQLSTATE;
END
$$;
WITH role AS (SELECT r.role FROM privileges_role r WHERE r.oid <> 0),
tried(role, object, privilege, sql) AS (
  SELECT r.role, 'table ' || c.oid::regclass::text, p.privilege,
         format(CASE p.privilege WHEN 'SELECT' THEN 'SELECT FROM %s' WHEN 'INSERT' THEN 'INSERT INTO %s DEFAULT VALUES' WHEN 'DELETE' THEN 'DELETE FROM %s'
                                 WHEN 'UPDATE' THEN 'UPDATE %s SET %I = DEFAULT' WHEN 'TRUNCATE' THEN 'TRUNCATE %s' END,
                c.oid::regclass, (SELECT a.attname FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum LIMIT 1))
    FROM role r, pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace, unnest('{SELECT,INSERT,UPDATE,DELETE,TRUNCATE}'::text[]) p(privilege)
   WHERE n.nspname LIKE 'synchro%' AND c.relkind IN ('r', 'p', 'm', 'f', 'v') AND NOT (c.relkind = 'v' AND p.privilege <> 'SELECT')
  UNION ALL
  SELECT r.role, 'function ' || f.oid::regprocedure::text, 'EXECUTE',
         -- not with constants: a strict function of NULL is not called at all
         format('SELECT %s(%s) FROM (SELECT %s OFFSET 0) a', f.oid::regproc, (SELECT string_agg(format('a%s', a.n), ', ' ORDER BY a.n) FROM unnest(f.proargtypes) WITH ORDINALITY a(type, n)),
                (SELECT string_agg(format('NULL::%s AS a%s', CASE WHEN a.type = 'anyelement'::regtype THEN 'text' ELSE a.type::regtype::text END, a.n), ', ' ORDER BY a.n)
                   FROM unnest(f.proargtypes) WITH ORDINALITY a(type, n)))
    FROM role r, pg_proc f JOIN pg_namespace n ON n.oid = f.pronamespace WHERE n.nspname LIKE 'synchro%'
)
SELECT count(*) > 2000 AS many, count(*) FILTER (WHERE x.result <> '42501') AS allowed, min(format('%s %s %s %s', x.role, x.object, x.privilege, x.result)) FILTER (WHERE x.result <> '42501') AS first
  FROM (SELECT t.*, privileges_try(t.role, t.sql) AS result FROM tried t
         WHERE NOT EXISTS (SELECT FROM privileges_held h WHERE (h.role, h.object, h.privilege) = (t.role, t.object, t.privilege))) x;

-- An ordinary login, tried.
SET SESSION AUTHORIZATION privileges_login;
SELECT * FROM synchro.client;
SELECT synchro.synchro_push('somebody', '{}');
SELECT synchro.synchro_health();
SELECT * FROM synchro_projection.privileges_note;
RESET SESSION AUTHORIZATION;
-- The adapter, tried.
SET ROLE synchro_adapter;
SELECT * FROM synchro.client;
SELECT * FROM privileges_note;
SELECT synchro.synchro_grant_user_scope('a', 'b');
SELECT synchro.synchro_health_detail();
SELECT status FROM synchro.synchro_pull('somebody', '{}');
RESET ROLE;
SET ROLE synchro_operator;
SELECT synchro.synchro_pull('somebody', '{}');
RESET ROLE;
SET ROLE synchro_worker;
SELECT synchro.synchro_push('somebody', '{}');
SELECT * FROM synchro.secret_key;
UPDATE synchro.client SET user_id = 'somebody';
RESET ROLE;

SELECT synchro.synchro_unregister_table('public.privileges_note');
