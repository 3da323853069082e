-- What is left of rebuild sessions after their time: first their chunks, then the stage; a stage in use stays.
BEGIN ISOLATION LEVEL REPEATABLE READ;
\getenv inputs PG_ABS_SRCDIR
\set fixture :inputs '/fixtures/endpoints.sql'
\set ECHO none
\i :fixture
\set ECHO all
-- Each of these rows fills a chunk.
SELECT ep.note(n, repeat('note ' || n, 1000), '{user:u}', 'l', n > 1) FROM generate_series(1, 5) n;
SELECT ep.note(9, 'other', '{s}'), synchro.synchro_register_shared_scope('s'), ep.connect('u-1');
SELECT left(ep.rebuild('u-1', 'user:u'), 20);
SELECT ep.rebuild('u-1', 's');
SELECT synchro._drop_expired_rebuilds(1000);
UPDATE synchro.rebuild_session SET expires_at = now() WHERE scope_id = 'user:u';
SELECT synchro._drop_expired_rebuilds(3);
SELECT (SELECT count(*) FROM synchro.rebuild_session), (SELECT count(*) FROM synchro.rebuild_stage), (SELECT count(*) FROM synchro.rebuild_chunk);
-- Half of a stage serves nobody.
SELECT left(ep.rebuild('u-1', 'user:u'), 20);
SELECT synchro._drop_expired_rebuilds(1000);
SELECT synchro._drop_expired_rebuilds(1000);
SELECT (SELECT count(*) FROM synchro.rebuild_session), (SELECT count(*) FROM synchro.rebuild_stage), (SELECT count(*) FROM synchro.rebuild_chunk);
ROLLBACK;
