-- The push executor (extension/push*.c). It switches to synchro_writer and names everything with its schema, so no search_path.

-- Raises 25000 unless the transaction is READ COMMITTED and has no deferred work waiting for its commit.
CREATE FUNCTION synchro._push_guard() RETURNS void
LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'synchro_push_guard';

-- The parts of a request's mutations array that SQL decides on. key_field and fields: ids in pk and in columns; head: the beginning of
-- every outcome; mutation: the whole object. The array's shape must have been checked.
CREATE FUNCTION synchro._push_read(p_mutations text)
RETURNS TABLE (ord int, mutation_id uuid, table_id text, key_field text, fields text[], authored_version bigint, authored_hash text,
               authored text, head text, mutation text)
LANGUAGE c IMMUTABLE STRICT ROWS 100 AS 'MODULE_PATHNAME', 'synchro_push_read';

-- Executes the mutations (the request's array) that have a relation number in p_rel_nos, in order, each in its subtransaction or, as
-- an atomic group, all or none. One row per executed mutation; code NULL: applied. Errors: temporary_unavailable when versions can't
-- be established in time, 25000, and everything operational that the application's tables raise.
CREATE FUNCTION synchro._push_apply(p_client_no bigint, p_user_id text, p_claims jsonb, p_schema_version bigint, p_atomic boolean,
                                    p_mutations text, p_rel_nos int[])
RETURNS TABLE (ord int, code text, message text, server_version text, server_row text, row_digest bytea)
LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'synchro_push_apply';
