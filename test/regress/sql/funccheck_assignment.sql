-- Rules of assignment functions.
SET client_min_messages = warning;
CREATE SCHEMA fa;
CREATE ROLE fa_app;
CREATE ROLE fa_other;
GRANT synchro_operator TO fa_app;
GRANT CREATE, USAGE ON SCHEMA fa TO fa_app, fa_other;
SET ROLE fa_app;
CREATE TABLE fa.follow (user_id text, section text);
RESET ROLE;
CREATE SCHEMA fa_closed;
CREATE TABLE fa_closed.t (user_id text, section text);
GRANT SELECT ON fa_closed.t TO PUBLIC;
CREATE TABLE fa.secret (user_id text, section text);
CREATE FUNCTION fa.helper(text) RETURNS text LANGUAGE sql IMMUTABLE RETURN $1;
CREATE FUNCTION fa.check(p_kind text, p_head text, p_body text, p_after text DEFAULT '', p_role text DEFAULT 'fa_app') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_result text;
BEGIN
  EXECUTE format('CREATE FUNCTION fa.f(%s %s', p_head, p_body);
  EXECUTE format('ALTER FUNCTION fa.f OWNER TO %I', p_role);
  EXECUTE 'REVOKE EXECUTE ON FUNCTION fa.f FROM PUBLIC';
  EXECUTE 'GRANT EXECUTE ON FUNCTION fa.f TO synchro_owner, synchro_worker';
  EXECUTE p_after;
  v_result := coalesce(synchro._check_function((SELECT f.oid FROM pg_proc f WHERE f.proname = 'f' AND f.pronamespace = 'fa'::regnamespace), p_kind, 'fa_app'::regrole, 'uuid'::regtype), 'accepted');
  RAISE EXCEPTION USING ERRCODE = 'OK000', MESSAGE = v_result;
EXCEPTION WHEN SQLSTATE 'OK000' THEN
  RETURN SQLERRM;
END
$$;
\set head 'p_user_id text) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro'
\set query 'BEGIN ATOMIC SELECT ''section:'' || section FROM fa.follow WHERE user_id = p_user_id; END'
SELECT fa.check('assignment', :'head', :'query') AS as_it_should_be;
SELECT fa.check('assignment', 'a text, b text) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro', 'RETURN ''a''') AS two_arguments,
       fa.check('assignment', 'a varchar) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro', 'RETURN ''a''') AS varchar_argument,
       fa.check('assignment', 'a text DEFAULT '''') RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro', 'RETURN ''a''') AS has_default,
       fa.check('assignment', 'VARIADIC a text[]) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro', 'RETURN ''a''') AS variadic;
SELECT fa.check('assignment', 'a text) RETURNS SETOF text LANGUAGE plpgsql STABLE SET search_path = pg_catalog, synchro', 'AS ''BEGIN RETURN; END''') AS plpgsql,
       fa.check('assignment', 'a text) RETURNS SETOF text LANGUAGE sql VOLATILE SET search_path = pg_catalog, synchro', 'RETURN ''a''') AS volatile,
       fa.check('assignment', 'a text) RETURNS SETOF text LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, synchro', 'RETURN ''a''') AS definer,
       fa.check('assignment', :'head', :'query', '', 'fa_other') AS other_owner,
       fa.check('assignment', :'head', :'query', 'REVOKE EXECUTE ON FUNCTION fa.f FROM synchro_owner') AS owner_may_not,
       fa.check('assignment', :'head', :'query', 'GRANT EXECUTE ON FUNCTION fa.f TO PUBLIC') AS public_may;
SELECT fa.check('assignment', :'head', 'BEGIN ATOMIC SELECT scope_id FROM synchro.user_scope; END') AS reads_synchro,
       fa.check('assignment', :'head', 'BEGIN ATOMIC SELECT section FROM fa.secret; END') AS no_select,
       fa.check('assignment', :'head', 'BEGIN ATOMIC SELECT section FROM fa_closed.t; END') AS no_usage,
       fa.check('assignment', :'head', 'BEGIN ATOMIC SELECT fa.helper(section) FROM fa.follow; END') AS calls_own,
       fa.check('assignment', :'head', 'BEGIN ATOMIC SELECT section FROM fa.follow WHERE random() < 0.5; END') AS calls_random,
       fa.check('assignment', :'head', 'BEGIN ATOMIC SELECT section FROM fa.follow TABLESAMPLE BERNOULLI (10); END') AS samples;
CREATE AGGREGATE fa.f(text) (SFUNC = array_append, STYPE = text[]);
SELECT synchro._check_function('fa.f'::regproc, 'assignment', 'fa_app'::regrole, 'text'::regtype) AS aggregate;
DROP AGGREGATE fa.f(text);
-- A temporary table would be another one in every session.
CREATE TEMP TABLE fa_temp (section text);
GRANT ALL ON fa_temp TO fa_app;
SELECT fa.check('assignment', :'head', 'BEGIN ATOMIC SELECT section FROM fa_temp; END') AS temporary;

DROP SCHEMA fa, fa_closed CASCADE;
DROP OWNED BY fa_app, fa_other;
DROP ROLE fa_app, fa_other;
