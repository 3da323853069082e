-- Scopes with their resume floor as a position (lsn, event, effect), which compares as a row: see extension/cursor.c.
CREATE VIEW synchro.scope_resume AS
  SELECT s.scope_no, s.scope_id, s.membership_generation, s.retention_generation, s.high_lsn, s.affected_version,
         coalesce(s.floor_lsn, '0/0') AS floor_lsn,
         CASE s.floor_kind WHEN 'generation_start' THEN -1 WHEN 'effect' THEN s.floor_event ELSE 9223372036854775807 END AS floor_event,
         CASE s.floor_kind WHEN 'generation_start' THEN -1 WHEN 'effect' THEN s.floor_effect ELSE 2147483647 END AS floor_effect
  FROM synchro.scope s;

-- Checkpoints of clients, likewise.
CREATE VIEW synchro.client_checkpoint AS
  SELECT a.client_no, a.scope_id, coalesce(a.ack_lsn, '0/0') AS ack_lsn,
         CASE a.ack_kind WHEN 'generation_start' THEN -1 WHEN 'effect' THEN a.ack_event ELSE 9223372036854775807 END AS ack_event,
         CASE a.ack_kind WHEN 'generation_start' THEN -1 WHEN 'effect' THEN a.ack_effect ELSE 2147483647 END AS ack_effect,
         a.assigned
  FROM synchro.client_scope a;

-- Stages of which pages can be served: every generation that they were made under is current.
CREATE VIEW synchro.live_stage AS
  SELECT g.*
    FROM synchro.progress p
    JOIN synchro.rebuild_stage g ON (g.stream_generation, g.schema_version) = (p.stream_generation, p.schema_version)
    LEFT JOIN synchro.scope s ON s.scope_id = g.scope_id
   WHERE (g.membership_generation, g.retention_generation) = (coalesce(s.membership_generation, 1), coalesce(s.retention_generation, 1));

-- The tables of manifests: their ids, key, and where their rows are: column key_column, of key_type, of synchro_data.projection.
CREATE VIEW synchro.synced_relation AS
  SELECT f.schema_version, f.rel_no, r.table_id, f.type AS pk_type, f.field_id AS key_field_id, 'r_' || f.rel_no AS projection,
         'c' || f.attnum AS key_column, c.storage_type AS key_type
  FROM synchro.manifest_field f
  JOIN synchro.relation r ON r.rel_no = f.rel_no
  JOIN synchro.captured_column c ON c.rel_no = f.rel_no AND c.attnum = f.attnum
  WHERE f.is_key;

-- A valid cursor of a pull, in memory; scope_no and high_lsn are NULL before the scope's first effect.
CREATE TYPE synchro.scope_cursor AS (scope_no bigint, scope_id text, lsn pg_lsn, event bigint, effect int,
                                     membership_generation bigint, retention_generation bigint, high_lsn pg_lsn);
