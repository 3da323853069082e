-- Fixed DDL and the baseline, in C, with the rights that they take.

CREATE FUNCTION synchro._lock_relation(p_relation oid) RETURNS void LANGUAGE c VOLATILE STRICT
SET search_path = pg_catalog, synchro, pg_temp
AS 'MODULE_PATHNAME', 'synchro_lock_relation';
COMMENT ON FUNCTION synchro._lock_relation(oid) IS
  'Stops writers of the relation and its partitions until the transaction ends. Locks: SHARE ROW EXCLUSIVE on them.';

CREATE FUNCTION synchro._install_triggers(p_rel_no int, p_relation oid, p_relation_id uuid, p_table_id uuid, p_kind "char",
  p_key_attnum smallint, p_sync_attnums smallint[], p_text_attnums smallint[], p_required_attnums smallint[] DEFAULT '{}') RETURNS void LANGUAGE c VOLATILE
SET search_path = pg_catalog, synchro, pg_temp
AS 'MODULE_PATHNAME', 'synchro_install_triggers';
COMMENT ON FUNCTION synchro._install_triggers(int, oid, uuid, uuid, "char", smallint, smallint[], smallint[], smallint[]) IS
  'Creates or replaces the fence, key guard and TRUNCATE guard of a relation, enabled always; needs its captured_column rows. '
  'p_table_id is NULL for a capture dependency. Locks: SHARE ROW EXCLUSIVE on the relation and its partitions.';

CREATE FUNCTION synchro._remove_triggers(p_relation oid) RETURNS void LANGUAGE c VOLATILE STRICT
SET search_path = pg_catalog, synchro, pg_temp
AS 'MODULE_PATHNAME', 'synchro_remove_triggers';
COMMENT ON FUNCTION synchro._remove_triggers(oid) IS
  'Drops the triggers of _install_triggers, if the relation still exists and is not registered. Locks: ACCESS EXCLUSIVE on it and its partitions.';

CREATE FUNCTION synchro._publish(p_relation oid) RETURNS void LANGUAGE c VOLATILE STRICT
SET search_path = pg_catalog, synchro, pg_temp
AS 'MODULE_PATHNAME', 'synchro_publish';
COMMENT ON FUNCTION synchro._publish(oid) IS
  'Adds the relation to publication synchro.publication_name, which is created when absent. Errors: invalid_configuration for a '
  'publication that is not ours, is FOR ALL TABLES or lacks an operation. Locks: SHARE UPDATE EXCLUSIVE on the relation.';

CREATE FUNCTION synchro._create_publication() RETURNS void LANGUAGE c VOLATILE STRICT
SET search_path = pg_catalog, synchro, pg_temp
AS 'MODULE_PATHNAME', 'synchro_ensure_publication';
COMMENT ON FUNCTION synchro._create_publication() IS
  'Creates publication synchro.publication_name if it is absent. Errors: those of _publish.';

CREATE FUNCTION synchro._unpublish(p_relation oid) RETURNS void LANGUAGE c VOLATILE STRICT
SET search_path = pg_catalog, synchro, pg_temp
AS 'MODULE_PATHNAME', 'synchro_unpublish';
COMMENT ON FUNCTION synchro._unpublish(oid) IS
  'Takes the relation out of the publication, if it is there.';

CREATE FUNCTION synchro._baseline(p_rel_no int, p_generation bigint, p_table name) RETURNS bigint LANGUAGE c VOLATILE STRICT
SET search_path = pg_catalog, synchro, pg_temp
AS 'MODULE_PATHNAME', 'synchro_baseline';
COMMENT ON FUNCTION synchro._baseline(int, bigint, name) IS
  'Replaces the rows of the projection, or of another table of synchro_data like it, by those of the source under the caller''s snapshot, with fresh versions; returns their '
  'number. Errors: unsupported_relation, 55000 when the relation has changed. Locks: ROW EXCLUSIVE on the projection.';
