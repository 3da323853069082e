-- Generation 1 with the empty manifest, version 1, is current from the start.
WITH b AS (
  SELECT '{"compatibility_floor":1,"parent_schema":null,"schema_version":1,"tables":[],"transition_class":"initial"}'::text AS body
), h AS (
  SELECT synchro._manifest_hash(body::json) AS hash FROM b
)
INSERT INTO synchro.manifest (schema_version, schema_hash, parent_version, transition_class, compatibility_floor, body)
SELECT 1, hash, NULL, 'initial', 1,
       '{"compatibility_floor":1,"parent_schema":null,"schema_hash":"' || hash
       || '","schema_version":1,"tables":[],"transition_class":"initial"}'
FROM h;
INSERT INTO synchro.registry_generation (generation, schema_version, actor) VALUES (1, 1, session_user);
INSERT INTO synchro.progress (stream_generation, system_identifier, timeline, database_oid, registry_generation,
                              schema_version, commit_lsn, end_lsn, seen_lsn, heartbeat_at)
SELECT 1, i.system_identifier, i.timeline, i.database_oid, 1, 1, '0/0', '0/0', '0/0', pg_catalog.now()
FROM synchro._stream_identity() i;
