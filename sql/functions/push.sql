-- The push executor (extension/push*.c). It switches to synchro_writer and names everything with its schema, so no search_path.

-- Raises 25000 unless the transaction is READ COMMITTED and has no deferred work waiting for its commit.
CREATE FUNCTION synchro._push_guard() RETURNS void
LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'synchro_push_guard';

-- What these read of a request (p_request, the whole one) is parsed once in a transaction. Its shape must have been checked (_request).

-- The envelope of a push. fingerprint and mutations (ids in request order) are NULL without a client_generation; computing them checks
-- what is in the mutations. Errors: invalid_request.
CREATE FUNCTION synchro._push_request(p_user text, p_request text, OUT batch_id uuid, OUT atomic boolean, OUT client_generation bigint,
                                      OUT schema text, OUT fingerprint bytea, OUT mutations uuid[])
LANGUAGE c IMMUTABLE STRICT AS 'MODULE_PATHNAME', 'synchro_push_request';

-- Mutations in request order. shape: number of the mutation's shape, from 0; head: the beginning of every outcome.
CREATE FUNCTION synchro._push_read(p_user text, p_request text)
RETURNS TABLE (ord int, shape int, fingerprint bytea, authored text, head text)
LANGUAGE c IMMUTABLE STRICT ROWS 100 AS 'MODULE_PATHNAME', 'synchro_push_read';

-- Mutations of one shape write the same fields of the same table and were authored under the same manifest. key_field and fields: ids in
-- pk and in columns. Shapes have numbers in the order in which they first appear.
CREATE FUNCTION synchro._push_shapes(p_request text)
RETURNS TABLE (shape int, table_id text, key_field text, fields text[], authored_version bigint, authored_hash text)
LANGUAGE c IMMUTABLE STRICT ROWS 2 AS 'MODULE_PATHNAME', 'synchro_push_shapes';

-- Executes the request's mutations that have a relation number in p_rel_nos, in order, each in its subtransaction or, as
-- an atomic group, all or none. One row per executed mutation; code NULL: applied. Errors: temporary_unavailable when versions can't
-- be established in time, 25000, and everything operational that the application's tables raise.
CREATE FUNCTION synchro._push_apply(p_client_no bigint, p_user_id text, p_claims jsonb, p_schema_version bigint, p_atomic boolean,
                                    p_request text, p_rel_nos int[])
RETURNS TABLE (ord int, code text, message text, server_version text, server_row text, row_digest bytea)
LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'synchro_push_apply';
