-- Counters that travel end with the range that every reader keeps exact: they fail there and never wrap.
BEGIN ISOLATION LEVEL REPEATABLE READ;
\getenv inputs PG_ABS_SRCDIR
\set fixture :inputs '/fixtures/endpoints.sql'
\set ECHO none
\i :fixture
\set ECHO all
SELECT synchro._next(0), synchro._next(9007199254740990);
SELECT ep.connect('u-1');
SELECT ep.pull('u-1');
SAVEPOINT s;
-- The version of the scopes.
UPDATE synchro.client SET scope_set_version = 9007199254740990;
UPDATE ep.client SET set_version = 9007199254740990;
SELECT synchro.synchro_register_shared_scope('s');
SELECT ep.connect('u-1');
SELECT synchro.synchro_register_shared_scope('s2');
SELECT ep.verdict('u-1', 'connect'), ep.verdict('u-1', 'pull');
SELECT scope_set_version, (SELECT array_agg(scope_id ORDER BY scope_id) FROM synchro.client_scope WHERE assigned) FROM synchro.client;
ROLLBACK TO s;
-- Client generations: one above both the server's and the client's.
SELECT ep.connect('u-1', '{"client_generation":9007199254740990}');
SELECT ep.verdict('u-1', 'connect', '{"client_generation":9007199254740990}');
UPDATE synchro.client SET expired = true;
SELECT ep.verdict('u-1', 'connect');
ROLLBACK TO s;
\set VERBOSITY sqlstate
SELECT synchro._next(9007199254740991);
ROLLBACK;
