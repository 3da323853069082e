-- Every rule of an impact function, broken on its own.
SET client_min_messages = warning;
CREATE SCHEMA fi;
CREATE ROLE fi_app;
CREATE ROLE fi_other;
GRANT synchro_operator TO fi_app, fi_other;
GRANT CREATE, USAGE ON SCHEMA fi TO fi_app, fi_other;
CREATE TABLE fi.base (id uuid PRIMARY KEY, owner text, at timestamptz);
ALTER TABLE fi.base OWNER TO fi_app;
CREATE VIEW synchro_projection.fi_note AS SELECT * FROM fi.base;
GRANT SELECT ON synchro_projection.fi_note TO fi_app, fi_other;
CREATE FUNCTION fi.helper(jsonb) RETURNS text LANGUAGE sql IMMUTABLE RETURN $1::text;
CREATE OPERATOR fi.|+| (FUNCTION = fi.helper, RIGHTARG = jsonb);
CREATE TYPE fi.row_ref AS (table_id text, pk_type text, pk_value text);
-- Creates the function as its owner, checks it, and undoes that.
CREATE FUNCTION fi.check(p_head text, p_body text, p_after text DEFAULT '', p_role text DEFAULT 'fi_app') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_result text;
BEGIN
  EXECUTE format('SET LOCAL ROLE %I', p_role);
  EXECUTE format('CREATE FUNCTION fi.f(%s %s', p_head, p_body);
  EXECUTE 'REVOKE EXECUTE ON ROUTINE fi.f FROM PUBLIC';
  EXECUTE 'GRANT EXECUTE ON ROUTINE fi.f TO synchro_worker';
  EXECUTE p_after;
  RESET ROLE;
  v_result := coalesce(synchro._check_function((SELECT f.oid FROM pg_proc f WHERE f.proname = 'f' AND f.pronamespace = 'fi'::regnamespace), 'impact', 'fi_app'::regrole, 0), 'accepted');
  RAISE EXCEPTION USING ERRCODE = 'OK000', MESSAGE = v_result;
EXCEPTION WHEN SQLSTATE 'OK000' THEN
  RETURN SQLERRM;
END
$$;
CREATE FUNCTION fi.body(p_query text) RETURNS text LANGUAGE sql AS $$
  SELECT fi.check('p_old_row jsonb, p_new_row jsonb) RETURNS SETOF synchro.synchro_row_ref LANGUAGE sql STABLE SET search_path = pg_catalog, synchro', 'BEGIN ATOMIC ' || p_query || '; END')
$$;
\set good 'p_old_row jsonb, p_new_row jsonb) RETURNS SETOF synchro.synchro_row_ref LANGUAGE sql STABLE SET search_path = pg_catalog, synchro'
\set returns 'RETURNS SETOF synchro.synchro_row_ref LANGUAGE sql STABLE SET search_path = pg_catalog, synchro'
\set query 'BEGIN ATOMIC SELECT ''t'', ''string'', n.id::text FROM synchro_projection.fi_note n WHERE n.owner IN (p_old_row->>''owner'', p_new_row->>''owner''); END'
\set constant 'BEGIN ATOMIC SELECT ''t'', ''string'', ''x''; END'
SELECT fi.check(:'good', :'query') AS as_it_should_be, fi.check(:'good', :'constant') AS whatever_changed;
-- Signature.
SELECT fi.check('a jsonb) ' || :'returns', :'constant') AS one_argument, fi.check('a json, b json) ' || :'returns', :'constant') AS json_arguments,
       fi.check('a jsonb, b jsonb, c text) ' || :'returns', :'constant') AS three_arguments, fi.check('a jsonb, b jsonb DEFAULT NULL) ' || :'returns', :'constant') AS has_default,
       fi.check('a jsonb, VARIADIC b jsonb[]) ' || :'returns', :'constant') AS variadic;
SELECT fi.check('a jsonb, b jsonb) RETURNS synchro.synchro_row_ref LANGUAGE sql STABLE SET search_path = pg_catalog, synchro', :'constant') AS one_row,
       fi.check('a jsonb, b jsonb) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro', 'RETURN ''a''') AS texts,
       fi.check('a jsonb, b jsonb) RETURNS SETOF fi.row_ref LANGUAGE sql STABLE SET search_path = pg_catalog, synchro', :'constant') AS look_alike,
       fi.check('a jsonb, b jsonb) RETURNS TABLE (table_id text, pk_type text, pk_value text) LANGUAGE sql STABLE SET search_path = pg_catalog, synchro', :'constant') AS returns_table;
-- Language, body, attributes, settings.
SELECT fi.check('a jsonb, b jsonb) RETURNS SETOF synchro.synchro_row_ref LANGUAGE plpgsql STABLE SET search_path = pg_catalog, synchro', 'AS ''BEGIN RETURN; END''') AS plpgsql,
       fi.check(:'good', 'AS ''SELECT 1::text, 2::text, 3::text''') AS string_body;
SELECT fi.check('a jsonb, b jsonb) RETURNS SETOF synchro.synchro_row_ref LANGUAGE sql VOLATILE SET search_path = pg_catalog, synchro', :'constant') AS volatile,
       fi.check('a jsonb, b jsonb) RETURNS SETOF synchro.synchro_row_ref LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, synchro', :'constant') AS immutable,
       fi.check('a jsonb, b jsonb) RETURNS SETOF synchro.synchro_row_ref LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, synchro', :'constant') AS definer,
       fi.check('a jsonb, b jsonb) RETURNS SETOF synchro.synchro_row_ref LANGUAGE sql STABLE', :'constant') AS no_path,
       fi.check('a jsonb, b jsonb) RETURNS SETOF synchro.synchro_row_ref LANGUAGE sql STABLE SET search_path = pg_catalog, synchro, public', :'constant') AS longer_path,
       fi.check(:'good' || ' SET timezone = ''UTC''', :'constant') AS other_setting;
-- Ownership and privileges.
SELECT fi.check(:'good', :'query', '', 'fi_other') AS other_owner, fi.check(:'good', :'query', 'GRANT EXECUTE ON FUNCTION fi.f TO PUBLIC') AS public_may,
       fi.check(:'good', :'query', 'REVOKE EXECUTE ON FUNCTION fi.f FROM synchro_worker') AS worker_may_not,
       fi.check(:'good', :'query', 'RESET ROLE; REVOKE SELECT ON synchro_projection.fi_note FROM fi_app') AS no_select,
       fi.check(:'good', :'query', 'RESET ROLE; REVOKE USAGE ON SCHEMA synchro_projection FROM synchro_operator') AS no_usage;
-- What it reads, does and calls.
SELECT fi.body('SELECT ''t'', ''string'', b.id::text FROM fi.base b') AS base_table, fi.body('SELECT ''t'', ''string'', relname FROM pg_class') AS catalog,
       fi.body('INSERT INTO fi.base (owner) VALUES (''x'') RETURNING ''t'', ''string'', owner') AS writes,
       fi.body('SELECT ''t'', ''string'', n.id::text FROM synchro_projection.fi_note n FOR SHARE') AS locks;
SELECT fi.body('SELECT ''t'', ''string'', (' || e || ')::text'), e
  FROM unnest(ARRAY['now()', 'CURRENT_USER', 'random()', 'current_setting(''TimeZone'')', 'fi.helper(p_new_row)', 'OPERATOR(fi.|+|) p_new_row', 'query_to_xml(''SELECT 1'', true, true, '''')',
                    '(p_new_row->>''at'')::timestamptz', '(jsonb_populate_record(NULL::fi.row_ref, p_new_row)).pk_value', 'synchro.synchro_table_id(''fi.base'')']) WITH ORDINALITY t(e, o) ORDER BY o;
-- Both images: what a change takes away is in the old one alone.
SELECT fi.body('SELECT ''t'', ''string'', p_new_row->>''owner''') AS new_only, fi.body('SELECT ''t'', ''string'', p_old_row->>''owner''') AS old_only,
       fi.body('SELECT ''t'', ''string'', i.r->>''owner'' FROM (VALUES (p_old_row), (p_new_row)) i(r) WHERE i.r IS NOT NULL') AS both,
       fi.body('SELECT ''t'', ''string'', p_old_row->>''owner''; SELECT ''t'', ''string'', $2->>''owner''') AS in_statements;
DROP SCHEMA fi CASCADE;
DROP OWNED BY fi_app, fi_other;
DROP ROLE fi_app, fi_other;
