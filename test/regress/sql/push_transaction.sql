-- What a push asks of its transaction.
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set fixture :abs_srcdir /fixtures/push.sql
\i :fixture
\set ECHO all
\set VERBOSITY terse
SET ROLE shop_owner;
CREATE TABLE shop.pair (id int PRIMARY KEY, other int REFERENCES shop.pair DEFERRABLE INITIALLY DEFERRED);
RESET ROLE;
INSERT INTO shop.note (id, owner) VALUES (pt.id('n1'), 'ann');
CALL pt.materialize('shop.note');
-- deferred trigger events of others
BEGIN;
INSERT INTO shop.pair VALUES (1, 1);
SELECT list, code FROM pt.push('ann', 'b1', pt.m('m1', 'insert', 'shop.note', to_json(pt.id('n2')), '{}'));
ROLLBACK;
BEGIN;
INSERT INTO shop.pair VALUES (1, 1);
SAVEPOINT s;
SELECT list, code FROM pt.push('ann', 'b1', pt.m('m1', 'insert', 'shop.note', to_json(pt.id('n2')), '{}'));
ROLLBACK TO s;
COMMIT;
SELECT (SELECT count(*) FROM shop.pair) AS pairs, (SELECT count(*) FROM synchro.push_batch) AS batches;
-- events that have run, or were undone, are no matter
BEGIN;
INSERT INTO shop.pair VALUES (2, 2);
SET CONSTRAINTS ALL IMMEDIATE;
SAVEPOINT s;
INSERT INTO shop.pair VALUES (3, 4);
ROLLBACK TO s;
SELECT list, code FROM pt.push('ann', 'b2', pt.m('m2', 'insert', 'shop.note', to_json(pt.id('n2')), '{}'));
COMMIT;
-- another isolation level
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT list, code FROM pt.push('ann', 'b3', pt.m('m3', 'insert', 'shop.note', to_json(pt.id('n3')), '{}'));
ROLLBACK;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT list, code FROM pt.push('ann', 'b3', pt.m('m3', 'insert', 'shop.note', to_json(pt.id('n3')), '{}'));
ROLLBACK;
-- a row that the same transaction wrote before, outside of a push, has no version
BEGIN;
UPDATE shop.note SET title = 'own write' WHERE id = pt.id('n1');
SELECT list, code FROM pt.push('ann', 'b4', pt.m('m4', 'update', 'shop.note', to_json(pt.id('n1')), '{"qty": 1}'));
ROLLBACK;
-- two pushes in one transaction are fine
BEGIN;
SELECT list, code FROM pt.push('ann', 'b5', pt.m('m5', 'update', 'shop.note', to_json(pt.id('n1')), '{"qty": 1}'));
ROLLBACK;
-- a rolled back push leaves nothing, and its context is over: direct writes write no push fences
BEGIN;
SAVEPOINT s;
SELECT list, code FROM pt.push('ann', 'b6', pt.m('m6', 'update', 'shop.note', to_json(pt.id('n1')), '{"qty": 1}'));
ROLLBACK TO s;
INSERT INTO shop.note (id, owner) VALUES (pt.id('n4'), 'ann');
SELECT synchro.synchro_subject();
COMMIT;
SELECT count(*) FROM synchro.push_fence WHERE key IN (pt.id('n1')::text, pt.id('n4')::text);
-- identity set by hand in a direct write attributes nothing to anybody
SET synchro.user_id = 'bob';
INSERT INTO shop.note (id, owner) VALUES (pt.id('n5'), coalesce(synchro.synchro_subject(), 'nobody')) RETURNING owner;
SELECT count(*) FROM synchro.push_fence WHERE key = pt.id('n5')::text;
SELECT user_id, accepted_write_epoch FROM synchro.client ORDER BY user_id;
RESET synchro.user_id;
