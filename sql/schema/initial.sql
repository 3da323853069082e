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

-- A key for every purpose.
SELECT pg_catalog.count(synchro._make_key(p)) FROM pg_catalog.unnest(ARRAY['fence', 'cursor', 'rebuild', 'seed_page', 'seed_receipt']) p;
