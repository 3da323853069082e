-- What is left of rebuild sessions after their time: first their rows, then the stage; a stage in use stays.
BEGIN ISOLATION LEVEL REPEATABLE READ;
\getenv inputs PG_ABS_SRCDIR
\set fixture :inputs '/fixtures/endpoints.sql'
\set ECHO none
\i :fixture
\set ECHO all
SELECT ep.note(n, 'note ' || n, '{user:u}', 'l', n > 1) FROM generate_series(1, 5) n;
SELECT ep.note(9, 'other', '{s}'), synchro.synchro_register_shared_scope('s'), ep.connect('u-1');
SELECT ep.rebuild('u-1', 'user:u');
SELECT ep.rebuild('u-1', 's');
SELECT synchro._drop_expired_rebuilds(1000);
UPDATE synchro.rebuild_session SET expires_at = now() WHERE scope_id = 'user:u';
SELECT synchro._drop_expired_rebuilds(3);
SELECT (SELECT count(*) FROM synchro.rebuild_session), (SELECT count(*) FROM synchro.rebuild_stage), (SELECT count(*) FROM synchro.rebuild_row);
-- Half of a stage serves nobody.
SELECT ep.rebuild('u-1', 'user:u');
SELECT synchro._drop_expired_rebuilds(1000);
SELECT synchro._drop_expired_rebuilds(1000);
SELECT (SELECT count(*) FROM synchro.rebuild_session), (SELECT count(*) FROM synchro.rebuild_stage), (SELECT count(*) FROM synchro.rebuild_row);
ROLLBACK;
