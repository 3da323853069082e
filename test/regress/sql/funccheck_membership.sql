-- Every rule of a membership function, broken on its own.
SET client_min_messages = warning;
CREATE SCHEMA fc;
CREATE ROLE fc_app;
CREATE ROLE fc_other;
GRANT synchro_operator TO fc_app, fc_other;
GRANT CREATE, USAGE ON SCHEMA fc TO fc_app, fc_other;
CREATE TABLE fc.base (id uuid PRIMARY KEY, owner text, at timestamptz, n int);
ALTER TABLE fc.base OWNER TO fc_app;
CREATE VIEW synchro_projection.fc_note AS SELECT * FROM fc.base;
CREATE VIEW synchro_projection.fc_hidden AS SELECT * FROM fc.base;
CREATE TABLE synchro_projection.fc_table (id uuid, owner text);
GRANT SELECT ON synchro_projection.fc_note, synchro_projection.fc_table TO fc_app, fc_other;
CREATE FUNCTION fc.helper(text) RETURNS text LANGUAGE sql IMMUTABLE RETURN $1;
CREATE OPERATOR fc.|+| (FUNCTION = fc.helper, RIGHTARG = text);
CREATE SEQUENCE fc.seq;
CREATE DOMAIN fc.dom AS text;
CREATE TYPE fc.color AS ENUM ('red', 'blue');
GRANT USAGE ON SEQUENCE fc.seq TO fc_app;

-- Creates the function as its owner, checks it, and undoes that.
CREATE FUNCTION fc.check(p_head text, p_body text, p_after text DEFAULT '', p_role text DEFAULT 'fc_app') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_result text;
BEGIN
  EXECUTE format('SET LOCAL ROLE %I', p_role);
  EXECUTE format('CREATE FUNCTION fc.f(%s %s', p_head, p_body);
  EXECUTE 'REVOKE EXECUTE ON ROUTINE fc.f FROM PUBLIC';
  EXECUTE 'GRANT EXECUTE ON ROUTINE fc.f TO synchro_worker';
  EXECUTE p_after;
  RESET ROLE;
  v_result := coalesce(synchro._check_function((SELECT f.oid FROM pg_proc f WHERE f.proname = 'f' AND f.pronamespace = 'fc'::regnamespace), 'membership', 'fc_app'::regrole, 'uuid'::regtype), 'accepted');
  RAISE EXCEPTION USING ERRCODE = 'OK000', MESSAGE = v_result;
EXCEPTION WHEN SQLSTATE 'OK000' THEN
  RETURN SQLERRM;
END
$$;
CREATE FUNCTION fc.body(p_query text) RETURNS text LANGUAGE sql AS $$
  SELECT fc.check('p_row_key uuid) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro', 'BEGIN ATOMIC ' || p_query || '; END')
$$;
\set good 'p_row_key uuid) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro'
\set query 'BEGIN ATOMIC SELECT owner FROM synchro_projection.fc_note WHERE id = p_row_key; END'

SELECT fc.check(:'good', :'query') AS as_it_should_be;
-- Signature.
SELECT fc.check('p_row_key text) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro', 'RETURN ''a'''),
       fc.check('a uuid, b uuid) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro', 'RETURN ''a'''),
       fc.check(') RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro', 'RETURN ''a''');
SELECT fc.check('p_row_key uuid DEFAULT NULL) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro', :'query') AS has_default,
       fc.check('VARIADIC p_row_key uuid[]) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro', 'RETURN ''a''') AS variadic;
SELECT fc.check('p_row_key uuid) RETURNS text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro', :'query') AS one_text,
       fc.check('p_row_key uuid) RETURNS SETOF varchar LANGUAGE sql STABLE SET search_path = pg_catalog, synchro', 'RETURN ''a''::varchar') AS varchars,
       fc.check('p_row_key uuid) RETURNS TABLE (scope text) LANGUAGE sql STABLE SET search_path = pg_catalog, synchro', :'query') AS returns_table,
       fc.check('p_row_key uuid, OUT scope text) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro', :'query') AS has_out;
-- Language and body.
SELECT fc.check('p_row_key uuid) RETURNS SETOF text LANGUAGE plpgsql STABLE SET search_path = pg_catalog, synchro', 'AS ''BEGIN RETURN; END''') AS plpgsql,
       fc.check(:'good', 'AS ''SELECT owner FROM synchro_projection.fc_note''') AS string_body;
CREATE AGGREGATE fc.f(uuid) (SFUNC = array_append, STYPE = uuid[]);
SELECT synchro._check_function('fc.f'::regproc, 'membership', 'fc_app'::regrole, 'uuid'::regtype) AS aggregate, length(synchro._definition_hash('fc.f'::regproc));
DROP AGGREGATE fc.f(uuid);
SELECT synchro._check_function(0, 'membership', 'fc_app'::regrole, 'uuid'::regtype) AS missing, synchro._definition_hash(0) IS NULL AS no_hash;
-- Attributes and settings.
SELECT fc.check('p_row_key uuid) RETURNS SETOF text LANGUAGE sql VOLATILE SET search_path = pg_catalog, synchro', :'query') AS volatile,
       fc.check('p_row_key uuid) RETURNS SETOF text LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, synchro', 'RETURN ''a''') AS immutable,
       fc.check('p_row_key uuid) RETURNS SETOF text LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, synchro', :'query') AS definer;
SELECT fc.check('p_row_key uuid) RETURNS SETOF text LANGUAGE sql STABLE', :'query') AS no_path,
       fc.check('p_row_key uuid) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro, public', :'query') AS longer_path,
       fc.check('p_row_key uuid) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = synchro, pg_catalog', :'query') AS other_order,
       fc.check('p_row_key uuid) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = ''pg_catalog, synchro''', :'query') AS one_name;
SELECT fc.check(:'good' || ' SET timezone = ''UTC''', :'query') AS other_setting,
       fc.check('p_row_key uuid) RETURNS SETOF text LANGUAGE sql STABLE SET timezone = ''UTC''', :'query') AS only_other_setting;
-- Ownership and privileges.
SELECT fc.check(:'good', :'query', '', 'fc_other') AS other_owner,
       fc.check(:'good', :'query', 'GRANT EXECUTE ON FUNCTION fc.f TO PUBLIC') AS public_may,
       fc.check(:'good', :'query', 'REVOKE EXECUTE ON FUNCTION fc.f FROM synchro_worker') AS worker_may_not;
ALTER TABLE fc.base OWNER TO synchro_owner;
SELECT fc.check(:'good', :'query', 'RESET ROLE; ALTER FUNCTION fc.f OWNER TO synchro_owner') AS owned_by_synchro;
ALTER TABLE fc.base OWNER TO fc_app;
SELECT fc.check(:'good', :'query', 'RESET ROLE; REVOKE SELECT ON synchro_projection.fc_note FROM fc_app') AS no_select,
       fc.check(:'good', :'query', 'RESET ROLE; REVOKE USAGE ON SCHEMA synchro_projection FROM synchro_operator') AS no_usage;
-- What it reads.
SELECT fc.body('SELECT owner FROM fc.base WHERE id = p_row_key') AS base_table;
SELECT fc.body('SELECT owner FROM synchro_projection.fc_table WHERE id = p_row_key') AS no_view;
SELECT fc.body('SELECT relname::text FROM pg_class') AS catalog;
SELECT fc.body('SELECT ''a'' WHERE EXISTS (SELECT FROM fc.base)') AS in_subquery;
SELECT fc.body('WITH x AS (SELECT owner FROM fc.base) SELECT owner FROM x') AS in_cte;
SELECT fc.body('SELECT owner FROM synchro_projection.fc_note UNION SELECT owner FROM fc.base') AS in_union;
SELECT fc.body('SELECT owner FROM synchro_projection.fc_table TABLESAMPLE BERNOULLI (10)') AS sample;
-- What it does.
SELECT fc.body('SELECT owner FROM synchro_projection.fc_note FOR UPDATE') AS locks;
SELECT fc.body('INSERT INTO fc.base (owner) VALUES (''x'') RETURNING owner') AS writes;
SELECT fc.body('WITH x AS (DELETE FROM fc.base RETURNING owner) SELECT owner FROM x') AS writes_in_cte;
-- What it calls.
SELECT fc.body('SELECT fc.helper(owner) FROM synchro_projection.fc_note WHERE id = p_row_key') AS function,
       fc.body('SELECT OPERATOR(fc.|+|) owner FROM synchro_projection.fc_note WHERE id = p_row_key') AS operator,
       fc.body('SELECT ''a'' FROM synchro._new_version()') AS of_synchro;
SELECT fc.body('SELECT owner FROM synchro_projection.fc_note WHERE at < ' || e), e
  FROM unnest(ARRAY['now()', 'transaction_timestamp()', 'statement_timestamp()', 'clock_timestamp()', 'timeofday()::timestamptz', 'CURRENT_TIMESTAMP', 'CURRENT_DATE',
                    'LOCALTIMESTAMP', 'owner::timestamptz', 'owner::date', 'now() - interval ''1 day''']) e;
SELECT fc.body('SELECT ' || e || '::text FROM synchro_projection.fc_note WHERE id = p_row_key'), e
  FROM unnest(ARRAY['CURRENT_USER', 'SESSION_USER', 'CURRENT_ROLE', 'CURRENT_CATALOG', 'CURRENT_SCHEMA', 'current_setting(''TimeZone'')', 'set_config(''a.b'', ''c'', false)',
                    'nextval(''fc.seq'')', 'random()', 'gen_random_uuid()', 'pg_backend_pid()', 'txid_current()', 'pg_current_xact_id()', 'version()', 'age(at)',
                    'query_to_xml(''SELECT 1'', true, true, '''')', 'table_to_xml(''pg_class'', true, true, '''')', 'ts_stat(''SELECT 1'')', 'ts_rewrite(''a'', ''SELECT 1'')',
                    'pg_sleep(1)', 'lo_get(1)', 'lo_create(0)', 'has_table_privilege(''pg_class'', ''SELECT'')', 'pg_has_role(''synchro_owner'', ''USAGE'')', 'pg_advisory_lock(1)',
                    'pg_notify(''a'', ''b'')', 'pg_read_file(''a'')', 'pg_typeof(owner)', 'to_regclass(''pg_class'')', 'owner::regclass', 'pg_relation_size(''pg_class'')', 'inet_client_addr()',
                    'to_tsvector(owner)', 'json_populate_record(NULL::pg_class, ''{}'')', 'owner::timestamptz[]', 'xmlelement(name a, owner)', 'owner::fc.dom',
                    '(SELECT max(now()))', 'CASE WHEN owner IS NULL THEN random() END', 'array_agg(random()) OVER ()', 'coalesce(owner, CURRENT_USER)', 'greatest(at, now())',
                    'ARRAY[now()]', 'ROW(now())']) WITH ORDINALITY t(e, o) ORDER BY o;
SELECT fc.body('SELECT owner FROM synchro_projection.fc_note ORDER BY random()') AS order_by, fc.body('SELECT owner FROM synchro_projection.fc_note LIMIT (random() * 3)::int') AS limits,
       fc.body('SELECT owner FROM synchro_projection.fc_note GROUP BY owner HAVING max(at) > now()') AS having,
       fc.body('SELECT a.owner FROM synchro_projection.fc_note a JOIN synchro_projection.fc_note b ON a.at < now()') AS join_on,
       fc.body('SELECT x FROM synchro_projection.fc_note, LATERAL (VALUES (CURRENT_USER::text)) v(x)') AS in_values,
       fc.body('SELECT count(*) FILTER (WHERE at < now())::text FROM synchro_projection.fc_note') AS filter;
-- What is allowed: nothing here knows more than its arguments and the pinned formats.
SELECT fc.body('SELECT ' || e || ' FROM synchro_projection.fc_note WHERE id = p_row_key'), e
  FROM unnest(ARRAY['''user:'' || owner', 'concat(''n:'', n)', 'format(''%s-%s'', owner, n)', 'lower(btrim(owner))', '''n:'' || n', 'to_char(at, ''YYYY'')', 'at::text', 'at::date::text',
                    'date_trunc(''month'', at)::text', 'extract(year FROM at)::text', '(at + interval ''1 day'')::text', 'unnest(string_to_array(owner, '',''))', 'md5(owner)',
                    'to_jsonb(owner) #>> ''{}''', 'regexp_replace(owner, ''x'', ''y'')', 'coalesce(nullif(owner, ''''), ''none'')', 'greatest(owner, ''a'')',
                    'CASE WHEN owner IN (''a'', ''b'') THEN ''x'' ELSE ''y'' END', '''color:'' || ''red''::fc.color', '(SELECT string_agg(x, '','' ORDER BY x) FROM unnest(ARRAY[owner]) x)',
                    'array_to_string(ARRAY[n, 1], ''-'')', 'left(owner, 3) COLLATE "C"']) WITH ORDINALITY t(e, o) ORDER BY o;
SELECT synchro._check_function('fc.helper'::regproc, 'nonsense', 'fc_app'::regrole, 'uuid'::regtype);
DROP SCHEMA fc CASCADE;
DROP TABLE synchro_projection.fc_table;
DROP OWNED BY fc_app, fc_other;
DROP ROLE fc_app, fc_other;
