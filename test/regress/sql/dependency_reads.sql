-- What membership and impact functions may read: their own row, declared columns of declared dependencies, siblings only when they say so.
SET client_min_messages = warning;
\set VERBOSITY terse
CREATE SCHEMA rd;
GRANT USAGE ON SCHEMA rd TO synchro_owner, synchro_worker;
CREATE TABLE rd.task (id int PRIMARY KEY, team int, parent int, owner text);
CREATE TABLE rd.member (id int PRIMARY KEY, team int, person text, note text);
CREATE TABLE rd.team (id int PRIMARY KEY, boss text, name text);
CREATE TABLE rd.other (id int PRIMARY KEY, team int);
GRANT SELECT ON rd.task, rd.member, rd.team, rd.other TO synchro_owner, synchro_worker;
SELECT synchro.synchro_prepare_projection_view('rd.task', 'rd_task', '{team,id,parent,owner}'), synchro.synchro_prepare_projection_view('rd.member', 'rd_member', '{id,team,person,note}'),
       synchro.synchro_prepare_projection_view('rd.team', 'rd_team', '{id,boss,name}'), synchro.synchro_prepare_projection_view('rd.other', 'rd_other', '{id,team}');
CREATE FUNCTION rd.run(p_sql text) RETURNS void LANGUAGE plpgsql AS $$BEGIN EXECUTE p_sql; END$$;
CREATE FUNCTION rd.impact(p_name text, p_body text) RETURNS void LANGUAGE sql AS $$
  SELECT rd.run(format('CREATE FUNCTION rd.%I(p_old_row jsonb, p_new_row jsonb) RETURNS SETOF synchro.synchro_row_ref LANGUAGE sql STABLE SET search_path = pg_catalog, synchro BEGIN ATOMIC %s; END',
                       p_name, replace(p_body, '{ref}', format('%L, ''int''', synchro.synchro_table_id('rd.task')))))
$$;
SELECT rd.impact('by_team', 'SELECT {ref}, t.id::text FROM synchro_projection.rd_task t WHERE t.team IN ((p_old_row->>''team'')::int, (p_new_row->>''team'')::int)'),
       rd.impact('by_id', 'SELECT {ref}, t.id::text FROM synchro_projection.rd_task t WHERE t.team IN ((p_old_row->>''id'')::int, (p_new_row->>''id'')::int)'),
       rd.impact('by_parent', 'SELECT {ref}, t.id::text FROM synchro_projection.rd_task t WHERE t.parent IN ((p_old_row->>''id'')::int, (p_new_row->>''id'')::int)');
CREATE FUNCTION rd.team_scopes(p_row_key int) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro BEGIN ATOMIC SELECT 'all'; END;

-- Registers task with a membership function of that body, depending on member (team, person) and team (boss), perhaps on siblings (team); undoes it.
CREATE FUNCTION rd.try(p_body text, p_siblings boolean DEFAULT false, p_impact text DEFAULT NULL) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_detail text;
  v_hint   text;
BEGIN
  PERFORM rd.run('CREATE FUNCTION rd.task_scopes(p_row_key int) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro BEGIN ATOMIC ' || p_body || '; END');
  IF p_impact IS NOT NULL THEN
    PERFORM rd.impact('tested', p_impact);
  END IF;
  REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA rd FROM PUBLIC;
  GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA rd TO synchro_worker;
  PERFORM synchro.synchro_register_table('rd.task', 'rd.task_scopes', 'multi_scope', p_push_policy => 'read_only');
  PERFORM synchro.synchro_register_table('rd.team', 'rd.team_scopes', p_push_policy => 'read_only', p_exclude_columns => '{boss}');
  PERFORM synchro.synchro_register_capture_dependency('rd.member', '{id}', '{team,person,note}');
  PERFORM synchro.synchro_register_membership_dependency('rd.member', 'rd.task', CASE WHEN p_impact IS NULL THEN 'rd.by_team' ELSE 'rd.tested' END, '{team,person}');
  PERFORM synchro.synchro_register_membership_dependency('rd.team', 'rd.task', 'rd.by_id', '{boss}');
  IF p_siblings THEN
    PERFORM synchro.synchro_register_membership_dependency('rd.task', 'rd.task', 'rd.by_parent', '{team}');
  END IF;
  SET CONSTRAINTS ALL IMMEDIATE;
  RAISE EXCEPTION USING ERRCODE = 'OK000';
EXCEPTION
  WHEN SQLSTATE 'OK000' THEN
    RETURN 'accepted';
  WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS v_detail = PG_EXCEPTION_DETAIL, v_hint = PG_EXCEPTION_HINT;
    RETURN SQLSTATE || ' ' || SQLERRM || CASE WHEN v_detail LIKE '{"error%' THEN '' ELSE ' ' || v_detail END;
END
$$;

-- Its own row: the key must be compared to p_row_key where the view is read, as a condition that must hold.
\pset format unaligned
SELECT rd.try(q), q FROM unnest(ARRAY[
  'SELECT t.owner FROM synchro_projection.rd_task t WHERE t.id = p_row_key',
  'SELECT t.owner FROM synchro_projection.rd_task t WHERE p_row_key = t.id AND t.team > 0',
  'SELECT t.owner FROM synchro_projection.rd_task t WHERE t.id IN (p_row_key)',
  'SELECT t.owner FROM synchro_projection.rd_task t WHERE t.team > 0 AND (t.parent IS NULL AND t.id = p_row_key)',
  'SELECT ''a'' WHERE EXISTS (SELECT FROM synchro_projection.rd_task t WHERE t.id = p_row_key)',
  'WITH x AS (SELECT * FROM synchro_projection.rd_task WHERE id = p_row_key) SELECT owner FROM x',
  'SELECT t.owner FROM synchro_projection.rd_task t WHERE t.id = p_row_key UNION ALL SELECT ''b'' FROM synchro_projection.rd_task t WHERE t.id = p_row_key',
  'SELECT m.person FROM synchro_projection.rd_member m JOIN synchro_projection.rd_task t ON t.team = m.team AND t.id = p_row_key',
  'SELECT m.person FROM synchro_projection.rd_member m LEFT JOIN synchro_projection.rd_task t ON t.team = m.team AND t.id = p_row_key',
  'SELECT m.person FROM synchro_projection.rd_task t RIGHT JOIN synchro_projection.rd_member m ON t.team = m.team AND t.id = p_row_key',
  'SELECT m.person FROM synchro_projection.rd_task t LEFT JOIN synchro_projection.rd_member m ON t.team = m.team WHERE t.id = p_row_key',
  'SELECT m.person FROM synchro_projection.rd_task t JOIN synchro_projection.rd_member m USING (team) WHERE t.id = p_row_key',
  'SELECT m.person FROM synchro_projection.rd_member m LEFT JOIN (synchro_projection.rd_team s JOIN synchro_projection.rd_task t ON t.team = s.id AND t.id = p_row_key) ON s.id = m.team',
  'SELECT ''all''']) WITH ORDINALITY u(q, n) ORDER BY n;
-- Everything else reads other rows.
SELECT rd.try(q), q FROM unnest(ARRAY[
  'SELECT t.owner FROM synchro_projection.rd_task t',
  'SELECT t.owner FROM synchro_projection.rd_task t WHERE t.team = p_row_key',
  'SELECT t.owner FROM synchro_projection.rd_task t WHERE t.id >= p_row_key',
  'SELECT t.owner FROM synchro_projection.rd_task t WHERE t.id = p_row_key OR t.team = 1',
  'SELECT t.owner FROM synchro_projection.rd_task t WHERE NOT (t.id = p_row_key)',
  'SELECT t.owner FROM synchro_projection.rd_task t WHERE (t.id = p_row_key) IS NOT TRUE',
  'SELECT t.owner FROM synchro_projection.rd_task t WHERE t.id = p_row_key + 1',
  'SELECT max(t.owner) FROM synchro_projection.rd_task t GROUP BY t.id HAVING t.id = p_row_key',
  'SELECT x.owner FROM (SELECT * FROM synchro_projection.rd_task) x WHERE x.id = p_row_key',
  'SELECT t.owner FROM synchro_projection.rd_task t WHERE t.id = p_row_key AND EXISTS (SELECT FROM synchro_projection.rd_task u WHERE u.parent = t.id)',
  'SELECT p.owner FROM synchro_projection.rd_task t JOIN synchro_projection.rd_task p ON p.id = t.parent WHERE t.id = p_row_key',
  'SELECT t.owner FROM synchro_projection.rd_task t WHERE t.id = p_row_key AND t.team = (SELECT max(u.team) FROM synchro_projection.rd_task u WHERE t.id = p_row_key)',
  'SELECT m.person FROM synchro_projection.rd_task t LEFT JOIN synchro_projection.rd_member m ON t.id = p_row_key',
  'SELECT m.person FROM synchro_projection.rd_member m RIGHT JOIN synchro_projection.rd_task t ON t.id = p_row_key',
  'SELECT m.person FROM synchro_projection.rd_member m FULL JOIN synchro_projection.rd_task t ON t.id = p_row_key',
  'WITH x AS (SELECT * FROM synchro_projection.rd_task) SELECT owner FROM x WHERE id = p_row_key',
  'SELECT count(*)::text FROM synchro_projection.rd_task']) WITH ORDINALITY u(q, n) ORDER BY n;
-- Siblings, once declared: of other rows the declared columns and the key.
SELECT rd.try(q, true), q FROM unnest(ARRAY[
  'SELECT ''team:'' || p.team FROM synchro_projection.rd_task t JOIN synchro_projection.rd_task p ON p.id = t.parent WHERE t.id = p_row_key',
  'SELECT p.owner FROM synchro_projection.rd_task t JOIN synchro_projection.rd_task p ON p.id = t.parent WHERE t.id = p_row_key',
  'SELECT t.owner FROM synchro_projection.rd_task t JOIN synchro_projection.rd_task p ON p.parent = t.id WHERE t.id = p_row_key',
  'SELECT count(*)::text FROM synchro_projection.rd_task']) WITH ORDINALITY u(q, n) ORDER BY n;

-- Dependencies: the declared columns and the key, however they are named.
SELECT rd.try(q), q FROM unnest(ARRAY[
  'SELECT m.person FROM synchro_projection.rd_task t JOIN synchro_projection.rd_member m ON m.team = t.team WHERE t.id = p_row_key',
  'SELECT s.boss FROM synchro_projection.rd_task t JOIN synchro_projection.rd_team s ON s.id = t.team WHERE t.id = p_row_key',
  'SELECT s.boss FROM synchro_projection.rd_team s WHERE s.id = p_row_key AND EXISTS (SELECT FROM synchro_projection.rd_member)',
  'SELECT ''member:'' || m.id FROM synchro_projection.rd_member m',
  'SELECT m.note FROM synchro_projection.rd_member m',
  'SELECT m.person FROM synchro_projection.rd_member m WHERE m.note IS NULL',
  'SELECT m.person FROM synchro_projection.rd_member m ORDER BY m.note LIMIT 1',
  'SELECT max(m.person) FROM synchro_projection.rd_member m GROUP BY m.note',
  'SELECT max(m.person) FILTER (WHERE m.note > '''') FROM synchro_projection.rd_member m',
  'SELECT first_value(m.person) OVER (ORDER BY m.note) FROM synchro_projection.rd_member m',
  'SELECT x.person FROM (SELECT * FROM synchro_projection.rd_member) x',
  'SELECT (SELECT s.name) FROM synchro_projection.rd_team s',
  'SELECT m::text FROM synchro_projection.rd_member m',
  'SELECT to_jsonb(m)->>''person'' FROM synchro_projection.rd_member m',
  'SELECT j.person FROM (synchro_projection.rd_task t JOIN synchro_projection.rd_member m ON t.id = p_row_key) j(a, b, c, d, e, f, person, h)',
  'SELECT j.person FROM (synchro_projection.rd_task t JOIN synchro_projection.rd_member m ON t.id = p_row_key) j(a, b, c, d, e, f, g, person)',
  'SELECT j::text FROM (synchro_projection.rd_task t JOIN synchro_projection.rd_member m ON t.id = p_row_key) j',
  'SELECT m.person FROM synchro_projection.rd_member m JOIN synchro_projection.rd_team s ON s.name = m.person',
  'SELECT name FROM (SELECT person AS name FROM synchro_projection.rd_member) m JOIN synchro_projection.rd_team s USING (name)',
  'SELECT ''a'' FROM synchro_projection.rd_member m NATURAL JOIN (SELECT 1 AS id, ''x'' AS note) x',
  'SELECT ''o'' FROM synchro_projection.rd_other',
  'SELECT ''o'' WHERE EXISTS (SELECT FROM synchro_projection.rd_other o WHERE o.id = p_row_key)']) WITH ORDINALITY u(q, n) ORDER BY n;

-- Impact functions: any row of the target, and of what it depends on what is declared. Both images count.
SELECT rd.try('SELECT ''all''', false, q), q FROM unnest(ARRAY[
  'SELECT {ref}, t.id::text FROM synchro_projection.rd_task t WHERE t.owner IN (p_old_row->>''person'', p_new_row->>''person'')',
  'SELECT {ref}, t.id::text FROM synchro_projection.rd_task t JOIN synchro_projection.rd_team s ON s.id = t.team WHERE s.boss IN (p_old_row->>''person'', p_new_row->>''person'')',
  'SELECT {ref}, t.id::text FROM synchro_projection.rd_task t JOIN synchro_projection.rd_team s ON s.id = t.team WHERE s.name IN (p_old_row->>''person'', p_new_row->>''person'')',
  'SELECT {ref}, t.id::text FROM synchro_projection.rd_task t JOIN synchro_projection.rd_other o USING (id) WHERE o.team IN ((p_old_row->>''team'')::int, (p_new_row->>''team'')::int)',
  'SELECT {ref}, t.id::text FROM synchro_projection.rd_task t',
  'SELECT {ref}, t.id::text FROM synchro_projection.rd_task t WHERE t.team = (p_new_row->>''team'')::int',
  'SELECT {ref}, t.id::text FROM synchro_projection.rd_task t WHERE t.team = (p_old_row->>''team'')::int']) WITH ORDINALITY u(q, n) ORDER BY n;
-- Of the images: declared columns (team, person) and the key, by names that are constants. A misspelt member never holds anything.
SELECT rd.try('SELECT ''all''', false, 'SELECT {ref}, t.id::text FROM synchro_projection.rd_task t' || q), q FROM unnest(ARRAY[
  ' WHERE t.id IN ((p_old_row->>''id'')::int, (p_new_row->>''team'')::int)',
  ' WHERE t.owner IN (p_old_row->>''persno'', p_new_row->>''person'')',
  ' WHERE t.owner IN (p_old_row->>''note'', p_new_row->>''person'')',
  ' WHERE t.owner IN (p_old_row->>t.owner, p_new_row->>''person'')']) WITH ORDINALITY u(q, n) ORDER BY n;
-- Members are found wherever an image passes through; ? is a use that cannot be told.
CREATE FUNCTION rd.members(p_query text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM rd.impact('tested', 'SELECT {ref}, t.id::text FROM synchro_projection.rd_task t' || p_query);
  RAISE EXCEPTION USING ERRCODE = 'OK000', MESSAGE = (
    SELECT coalesce(string_agg(DISTINCT coalesce(m.name, '?') COLLATE "C", ' '), 'none') FROM pg_proc f, synchro._image_members(f.oid) m(name)
      WHERE f.proname = 'tested' AND f.pronamespace = 'rd'::regnamespace);
EXCEPTION WHEN SQLSTATE 'OK000' THEN
  RETURN SQLERRM;
END
$$;
SELECT rd.members(q), q FROM unnest(ARRAY[
  ' WHERE t.id IN ((p_old_row->>''id'')::int, (p_new_row->>''id'')::int)',
  ' WHERE t.owner = coalesce(p_new_row, p_old_row)->>''person''',
  ' WHERE t.owner IN (p_old_row#>>''{person}'', jsonb_extract_path_text(p_new_row, ''person''))',
  ' WHERE t.owner = p_old_row->''person''->>''anything'' OR p_new_row ? ''team'' OR p_new_row[''person''] IS NULL',
  ' WHERE p_old_row IS DISTINCT FROM p_new_row AND num_nulls(p_old_row, p_new_row) = 1',
  ', (VALUES (p_old_row), (p_new_row)) v(r) WHERE t.owner = v.r->>''person''',
  ', unnest(ARRAY[p_old_row, p_new_row]) i WHERE t.owner = i->>''person''',
  ', (SELECT p_old_row AS r UNION ALL SELECT p_new_row) i WHERE t.owner = i.r->>''person''',
  ' JOIN (SELECT p_old_row AS r UNION ALL SELECT p_new_row) i ON t.owner = i.r->>''person''',
  ' WHERE EXISTS (WITH i AS (SELECT p_old_row AS r UNION ALL SELECT p_new_row) SELECT FROM i WHERE t.owner = i.r->>''person'')',
  ' WHERE t.owner = (SELECT CASE WHEN p_new_row IS NULL THEN p_old_row ELSE p_new_row END)->>''person''',
  ' WHERE t.owner IN (jsonb_build_object(''nobody'', p_old_row->>''person'')->>''nobody'', p_new_row->>''person'')',
  ' WHERE t.owner IN (p_old_row->>''persno'', p_new_row->>''person'')',
  ' WHERE t.owner IN (p_old_row->>''person'', p_new_row->>''Person'')',
  ' WHERE t.owner IN (p_old_row->>''note'', p_new_row->>''person'')',
  ' WHERE t.owner = coalesce(p_new_row, p_old_row)->>''persno''',
  ' WHERE t.owner IN (p_old_row#>>''{persno}'', p_new_row->>''person'')',
  ' WHERE t.owner IN (p_old_row->''persno''->>''person'', p_new_row->>''person'')',
  ' WHERE t.owner IN (jsonb_extract_path_text(p_old_row, ''persno''), p_new_row->>''person'')',
  ' WHERE t.owner = p_new_row->>''person'' OR p_old_row ? ''persno''',
  ' WHERE t.owner = p_new_row->>''person'' OR p_old_row[''persno''] IS NULL',
  ', (VALUES (p_old_row), (p_new_row)) v(r) WHERE t.owner = v.r->>''persno''',
  ', unnest(ARRAY[p_old_row, p_new_row]) i WHERE t.owner = i->>''persno''',
  ', (SELECT p_old_row AS r UNION ALL SELECT p_new_row) i WHERE t.owner = i.r->>''persno''',
  ', (SELECT NULL::jsonb AS r UNION ALL SELECT x FROM (VALUES (p_new_row), (p_old_row)) y(x)) i WHERE t.owner = i.r->>''persno''',
  ' JOIN (SELECT p_old_row AS r UNION ALL SELECT p_new_row) i ON true WHERE EXISTS (SELECT FROM synchro_projection.rd_task u WHERE u.owner = i.r->>''persno'')',
  ' WHERE EXISTS (WITH i AS (SELECT p_old_row AS r UNION ALL SELECT p_new_row) SELECT FROM (SELECT r FROM i) j WHERE t.owner = j.r->>''persno'')',
  ' WHERE t.owner IN (SELECT r->>''persno'' FROM (VALUES (p_old_row), (p_new_row)) v(r) GROUP BY r)',
  ' WHERE t.owner = (SELECT CASE WHEN p_new_row IS NULL THEN p_old_row ELSE p_new_row END)->>''persno''',
  ' WHERE t.owner = (ARRAY[p_old_row, p_new_row])[1]->>''persno''',
  ' WHERE t.owner = nullif(p_old_row, p_new_row)->>''persno''',
  ' WHERE t.owner IN (p_old_row->>t.owner, p_new_row->>''person'')',
  ' WHERE t.owner IN (p_old_row->>(''per'' || ''son''), p_new_row->>''person'')',
  ' WHERE t.owner IN (p_old_row->>0, p_new_row->>''person'')',
  ' WHERE t.owner IN (p_old_row::text, p_new_row->>''person'')',
  ' WHERE t.owner IN ((p_old_row::json)->>''person'', p_new_row->>''person'')',
  ' WHERE t.owner IN ((p_old_row || p_new_row)->>''person'')',
  ' WHERE t.owner IN (GREATEST(p_old_row, p_new_row)->>''person'')',
  ', jsonb_each_text(p_old_row) e WHERE t.owner IN (e.value, p_new_row->>''person'')',
  ' WHERE p_old_row @> ''{}'' AND t.owner = p_new_row->>''person''',
  ', (VALUES (p_old_row), (p_new_row)) v(r) WHERE to_jsonb(v)->''r''->>''persno'' = t.owner',
  ' WHERE t.owner IN (SELECT jsonb_agg(v.r)->>0 FROM (VALUES (p_old_row), (p_new_row)) v(r))']) WITH ORDINALITY u(q, n) ORDER BY n;
\pset format aligned

SELECT count(*) AS registered FROM synchro.registration r JOIN synchro.relation l USING (rel_no) WHERE l.physical_schema = 'rd';
DROP SCHEMA rd CASCADE;
