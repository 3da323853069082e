-- Pull pages: the merge over scopes, the limit, cursors that never pass what was not delivered, terminal checksums.
BEGIN ISOLATION LEVEL REPEATABLE READ;
\getenv inputs PG_ABS_SRCDIR
\set fixture :inputs '/fixtures/endpoints.sql'
\set ECHO none
\i :fixture
\set ECHO all
SELECT ep.note(1, 'one', '{user:u,s}'), synchro.synchro_register_shared_scope('s');
SELECT ep.connect('u-1');
SELECT ep.rebuild('u-1', 's');
SELECT ep.rebuild('u-1', 'user:u');
SELECT ep.pull('u-1');

-- The same row in two scopes is two changes; twice in one scope only the last one.
SELECT ep.note(1, 'two', '{user:u,s}'), ep.note(1, 'three', '{user:u,s}'), ep.item(1, '11', '{s}'), ep.note(2, 'new', '{user:u}', 'l', true);
SELECT ep.pull('u-1');
SELECT ep.pull('u-1');

-- Pages of one and of two changes; a scope without changes in the page keeps its place.
SELECT ep.item(n, (n * 10)::text, CASE n % 3 WHEN 0 THEN '{s,user:u}'::text[] WHEN 1 THEN '{s}' ELSE '{user:u}' END, 'l', n > 1) FROM generate_series(1, 5) n;
SELECT ep.pull('u-1', 1);
SELECT ep.pull('u-1', 2);
SELECT ep.pull('u-1', 2);
SELECT ep.pull('u-1', 2);

-- Leaving a scope, soft deletion and deletion.
SELECT ep.item(3, '30', '{s}'), ep.note(1, 'gone', '{user:u,s}', 's'), ep.item(4, NULL, '{}', 'd');
SELECT ep.pull('u-1', 3);
SELECT ep.pull('u-1', 3);
-- A page cut behind an effect goes on behind it, although the row changed meanwhile.
SELECT ep.item(5, '51', '{s}'), ep.item(1, '12', '{s}');
SELECT ep.pull('u-1', 1);
SELECT ep.item(1, '13', '{s}'), ep.item(5, '52', '{s}');
SELECT ep.pull('u-1');
ROLLBACK;
