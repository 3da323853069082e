-- Compaction: what it may delete, scope by scope, and how far the resume floor moves.
BEGIN ISOLATION LEVEL REPEATABLE READ;
\getenv inputs PG_ABS_SRCDIR
\set fixture :inputs '/fixtures/endpoints.sql'
\set ECHO none
\i :fixture
\set ECHO all
SELECT synchro.synchro_register_shared_scope('s'), ep.note(1, 'one', '{s,t,user:u}'), ep.note(2, 'two', '{s}'), ep.note(3, 'three', '{s}'), ep.note(4, 'four', '{s,t}'), ep.item(5, '5', '{s}', 's');
SELECT ep.connect(c) FROM unnest('{u-1,u-2}'::text[]) c;
SELECT substr(ep.rebuild(c, s), 1, 9) FROM (VALUES ('u-1', 's'), ('u-1', 'user:u'), ('u-2', 's'), ('u-2', 'user:u')) v (c, s);
CREATE FUNCTION ep.left(p_scope text) RETURNS bigint LANGUAGE sql AS $$ SELECT count(*) FROM synchro.scope_entry JOIN synchro.scope USING (scope_no) WHERE scope_id = p_scope AND state = 'x' $$;
CREATE FUNCTION ep.floor(p_scope text) RETURNS text LANGUAGE sql AS $$ SELECT concat_ws(' ', floor_kind, floor_lsn, floor_event, floor_effect) FROM synchro.scope WHERE scope_id = p_scope $$;
CREATE FUNCTION ep.kept() RETURNS text LANGUAGE sql AS $$ SELECT md5(string_agg(e::text, ',' ORDER BY scope_no, rel_no, key)) FROM synchro.scope_entry e WHERE state <> 'x' $$;
CREATE FUNCTION ep.compact(p_batch int DEFAULT 10000) RETURNS text LANGUAGE sql AS $$ SELECT concat_ws(' then ', o_deleted, (SELECT scope_id FROM synchro.scope WHERE scope_no = o_after + 1)) FROM synchro._compact_scopes(0, p_batch) $$;
-- Pulls, and shows nothing.
CREATE FUNCTION ep.sync(p_client text, p_times int DEFAULT 2, p_limit int DEFAULT 100) RETURNS void LANGUAGE plpgsql AS $$ BEGIN FOR i IN 1 .. p_times LOOP PERFORM ep.pull(p_client, p_limit); END LOOP; END $$;
SELECT ep.kept() AS kept, ep.note(1, 'one', '{user:u,t}'), ep.note(2, 'two', '{}'), ep.note(3, 'three', '{}', 'd') \gset

-- Both clients have acknowledged nothing: everything is kept, and no floor moves.
SELECT ep.compact(), ep.left('s'), ep.floor('s'), ep.floor('t');
-- One has everything, but the slower one counts; a cursor that was issued and not presented does not.
SELECT ep.sync('u-1');
SELECT ep.compact(), ep.left('s'), ep.sync('u-2', 1, 2), ep.compact(), ep.floor('s');
-- Expired, it stands below the floor: it would rebuild this scope alone, and acknowledge nothing in it.
SAVEPOINT early;
UPDATE synchro.client SET expired = true WHERE client_id = 'u-2';
SELECT ep.compact(), ep.left('s'), ep.floor('s') = ep.ack('u-1', 's') AS safe;
UPDATE synchro.client SET expired = false WHERE client_id = 'u-2';
SELECT ep.pull('u-2');
SELECT ep.ack('u-2', 's'), ep.ack('u-2', 'user:u') LIKE 'effect%' AS moved;
ROLLBACK TO early;
-- The second page presents the cursor of the first.
SELECT ep.pull('u-2', 2);
SAVEPOINT s;
SELECT ep.compact(), ep.left('s'), ep.floor('s') = ep.ack('u-2', 's') AS safe, ep.floor('s') LIKE 'effect %' AS effect, ep.floor('t');
SELECT ep.compact(), ep.floor('s') = ep.ack('u-2', 's') AS unmoved;
-- The slow client goes on from where it is, and the scope's digest holds.
SELECT ep.pull('u-2');
ROLLBACK TO s;
-- Batches; live rows and source tombstones stay as they are.
SELECT ep.sync('u-2');
SELECT ep.kept() AS kept \gset
SELECT ep.compact(2), ep.compact(2), ep.compact(2), ep.left('s'), ep.kept() = :'kept' AS untouched;
SELECT ep.floor('s') = least(ep.ack('u-1', 's'), ep.ack('u-2', 's')) AS safe, ep.floor('s') LIKE 'transaction_end %' AS whole, ep.floor('user:u'), ep.floor('t');
-- The floor stays when nothing is left, and never goes back.
SELECT ep.floor('s') AS floor \gset
UPDATE synchro.client_scope SET ack_kind = 'generation_start', ack_lsn = NULL WHERE scope_id = 's';
SELECT ep.note(4, 'four', '{t}'), ep.compact(), ep.floor('s') = :'floor' AS stays;
ROLLBACK TO s;

-- A scope that nobody is assigned: all of it, to its last effect. Cursors of other scopes stay good.
SELECT ep.note(1, 'one', '{user:u}'), ep.note(4, 'four', '{s}'), ep.compact(), ep.left('t'), ep.left('s');
SELECT ep.floor('t') = 'transaction_end ' || high_lsn AS high FROM synchro.scope WHERE scope_id = 't';
SELECT ep.pull('u-1');
ROLLBACK TO s;
-- What expired and retired clients have not seen is not kept, and nobody else's business.
SELECT ep.compact(), ep.left('s');
UPDATE synchro.client SET expired = true WHERE client_id = 'u-2';
SELECT ep.compact(), ep.left('s');
SELECT ep.pull('u-1');
ROLLBACK TO s;
UPDATE synchro.client SET retired_at = now() WHERE client_id = 'u-2';
SELECT ep.compact(), ep.left('s');
ROLLBACK TO s;
-- A row that comes back is not left any more.
SELECT ep.note(2, 'two', '{s}'), ep.sync('u-1'), ep.sync('u-2');
SELECT ep.compact(), ep.left('s');
SELECT ep.pull('u-2');
ROLLBACK TO s;
-- A rebuild under way keeps what comes after its boundary, even what its client has acknowledged with the cursor it had before.
SELECT ep.note(7, 'seven', '{s}'), ep.sync('u-1'), ep.sync('u-2'), ep.compact();
CREATE FUNCTION ep.page(p_cursor text) RETURNS text LANGUAGE sql AS $$ SELECT coalesce(r.body ->> 'cursor', r.body ->> 'final_scope_cursor', r.status || ' ' || (r.body #>> '{error,code}'))
  FROM ep.call('u-1', 'rebuild', jsonb_build_object('scope', 's', 'limit', 1, 'cursor', p_cursor)) r $$;
SELECT ep.page('?') AS second \gset
SELECT ep.note(4, 'four', '{t}'), ep.note(6, 'six', '{s}'), ep.sync('u-1'), ep.sync('u-2'), ep.compact(), ep.left('s');
SAVEPOINT page;
-- After its last page; after its time; with a new generation of its client: what was acknowledged counts alone.
SELECT (SELECT completed FROM synchro.rebuild_session ORDER BY issued_at DESC, stage_no DESC LIMIT 1), ep.page(:'second') AS final \gset
SELECT ep.compact(), ep.left('s');
SELECT ep.page(:'second') = :'final' AS again, synchro._token_open('cursor', :'final') IS NOT NULL AS cursor;
ROLLBACK TO page;
UPDATE synchro.rebuild_session SET expires_at = now();
SELECT ep.compact(), ep.left('s');
ROLLBACK TO page;
UPDATE synchro.client SET client_generation = 2 WHERE client_id = 'u-1';
SELECT ep.compact(), ep.left('s');
ROLLBACK;
