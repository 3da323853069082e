-- Row type of impact functions.
CREATE TYPE synchro.synchro_row_ref AS (table_id text, pk_type text, pk_value text);

-- The registration in force: what the materialized state was made with.
CREATE VIEW synchro.active_registration AS
  SELECT r.*, l.relation_id, l.table_id, l.physical_schema, l.physical_relation, l.relation_oid, p.schema_version
  FROM synchro.progress p
  JOIN synchro.registration r ON r.generation = p.registry_generation
  JOIN synchro.relation l ON l.rel_no = r.rel_no;

-- Relations that are captured, or have to be: those of the active generation and of all that may become active.
CREATE VIEW synchro.standing_registration AS
  SELECT r.*, l.relation_oid
  FROM synchro.registration r
  JOIN synchro.relation l ON l.rel_no = r.rel_no
  WHERE r.generation >= (SELECT p.registry_generation FROM synchro.progress p)
    AND NOT EXISTS (SELECT FROM synchro.backfill b WHERE b.generation = r.generation AND b.state = 'rejected');

-- Keys from the server's strong random source (gen_random_uuid: 122 random bits each; two of them through SHA-256).
INSERT INTO synchro.secret_key (purpose, key_id, secret, state)
SELECT p, pg_catalog.replace(pg_catalog.gen_random_uuid()::text, '-', ''),
       pg_catalog.substr(pg_catalog.sha256(pg_catalog.uuid_send(pg_catalog.gen_random_uuid())
                                           || pg_catalog.uuid_send(pg_catalog.gen_random_uuid())),
                         1, CASE p WHEN 'fence' THEN 16 ELSE 32 END), 'active'
FROM pg_catalog.unnest(ARRAY['fence', 'cursor', 'rebuild', 'seed_page', 'seed_receipt']) p;
