-- Partitioned tables, unusual names and types.
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set fixture :abs_srcdir /fixtures/push.sql
\i :fixture
\set ECHO all
SET ROLE shop_owner;
CREATE TYPE shop."Color" AS ENUM ('RED', 'gréen');
CREATE FUNCTION shop.is_short(text) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RETURN length($1) < 5 AND current_user = 'synchro_writer'; END$$;
CREATE DOMAIN shop.short AS text CONSTRAINT short_enough CHECK (shop.is_short(VALUE));
CREATE TABLE shop."Sché ma.Or""der" ("Id" int, "select" text, t shop."Color", "xmin 2" shop.short, total numeric GENERATED ALWAYS AS ("Id" * 2.5) STORED,
  no int GENERATED ALWAYS AS IDENTITY, PRIMARY KEY ("Id"));
CREATE TABLE shop.part (v text, id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE shop.part_low (id int NOT NULL, gone int, v text);
ALTER TABLE shop.part_low DROP COLUMN gone;
ALTER TABLE shop.part ATTACH PARTITION shop.part_low FOR VALUES FROM (0) TO (100);
CREATE TABLE shop.part_high PARTITION OF shop.part FOR VALUES FROM (100) TO (200);
GRANT ALL ON shop."Sché ma.Or""der", shop.part TO synchro_writer;
GRANT SELECT ON shop."Sché ma.Or""der", shop.part TO synchro_owner;
RESET ROLE;
SELECT pt.register('shop."Sché ma.Or""der"', 'enabled'), pt.register('shop.part', 'enabled') \g /dev/null
SELECT list, code, message, state FROM pt.push('ann', 'b1',
  pt.m('m1', 'insert', 'shop."Sché ma.Or""der"', '1', '{"select": "'' \" \\ $1", "t": "gréen", "xmin 2": "abc"}'),
  pt.m('m2', 'insert', 'shop."Sché ma.Or""der"', '2', '{"t": "blue"}'),
  pt.m('m3', 'insert', 'shop."Sché ma.Or""der"', '3', '{"xmin 2": "abcdef"}'),
  pt.m('m4', 'insert', 'shop."Sché ma.Or""der"', '4', '{"total": "1"}'),
  pt.m('m5', 'insert', 'shop."Sché ma.Or""der"', '5', '{"no": 1}'));
SELECT list, code, state FROM pt.push('ann', 'b2', pt.m('m6', 'update', 'shop."Sché ma.Or""der"', '1', '{"t": "RED"}'));
SELECT list, code FROM pt.push('ann', 'b3', pt.m('m7', 'delete', 'shop."Sché ma.Or""der"', '1'));
-- through the root of a partitioned table
SELECT list, code, message, state FROM pt.push('ann', 'b4', pt.m('m8', 'insert', 'shop.part', '1', '{"v": "low"}'),
  pt.m('m9', 'insert', 'shop.part', '101', '{"v": "high"}'), pt.m('m10', 'insert', 'shop.part', '900', '{"v": "nowhere"}'));
SELECT list, code, message, state FROM pt.push('ann', 'b5', pt.m('m11', 'insert', 'shop.part', '1', '{"v": "again"}'),
  pt.m('m12', 'update', 'shop.part', '101', '{"v": "higher"}'), pt.m('m13', 'delete', 'shop.part', '1'));
CALL pt.materialize('shop.part');
SELECT list, code, state FROM pt.push('ann', 'b6', pt.m('m14', 'update', 'shop.part', '101', '{"v": "highest"}'), pt.m('m15', 'insert', 'shop.part', '1', '{}'));
SELECT tableoid::regclass, * FROM shop.part;
-- a relation that is gone or changed under its registration
SELECT pt.m('m17', 'insert', 'shop.part', '5', '{}') AS m17 \gset
DROP TABLE shop.part;
SELECT list, code, state FROM pt.push('ann', 'b7', pt.m('m16', 'insert', 'shop.note', to_json(pt.id('n1')), '{}'), :'m17');
SELECT count(*) FROM shop.note;
