-- Canonical values, digests, keys and fingerprints (docs/integrity.md). All in C: extension/canonical*.c, extension/jcs*.c.
-- They look nothing up by name without a schema, so they need no search_path.

-- Portable type of a PostgreSQL type, NULL when it has none; p_as_text: synced as canonical text.
CREATE FUNCTION synchro._portable_type(p_type oid, p_as_text boolean) RETURNS text
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'synchro_portable_type';

-- Does the value have a portable form? NULL does. p_type must be the value's own type.
CREATE FUNCTION synchro._representable(p_type oid, p_as_text boolean, p_value anyelement) RETURNS boolean
LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'synchro_representable';

-- Forms of one row, from the source table or the projection, under a manifest. Errors: 22P02 with the column for a value without
-- portable form, 22023 when the row or the relation does not fit the manifest.
CREATE FUNCTION synchro._row_digest(p_rel int, p_schema_version bigint, p_row record, p_server_version text) RETURNS bytea
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10 AS 'MODULE_PATHNAME', 'synchro_row_digest';

CREATE FUNCTION synchro._row_json(p_rel int, p_schema_version bigint, p_row record) RETURNS text
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10 AS 'MODULE_PATHNAME', 'synchro_row_json';

CREATE FUNCTION synchro._row_identity(p_rel int, p_schema_version bigint, p_key_text text) RETURNS bytea
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'synchro_row_identity';

-- Key text <-> compact key octets (in identity order) -> wire JSON. p_pk_type: string, int or int64.
CREATE FUNCTION synchro._key_bytes(p_pk_type text, p_key text) RETURNS bytea
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'synchro_key_bytes';

CREATE FUNCTION synchro._key_text(p_pk_type text, p_key bytea) RETURNS text
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'synchro_key_text';

CREATE FUNCTION synchro._key_json(p_pk_type text, p_key bytea) RETURNS text
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'synchro_key_json';

-- Digest and number of the live entries of a scope under a manifest, over the relations that the manifest describes.
CREATE FUNCTION synchro._scope_digest(p_scope_no bigint, p_schema_version bigint, p_scope_id text)
RETURNS TABLE (digest text, cardinality bigint)
LANGUAGE c STABLE STRICT ROWS 1 COST 10000 SET jit = off AS 'MODULE_PATHNAME', 'synchro_scope_digest';

-- Text for the input function of p_target of a JSON value in canonical wire form; JSON null gives NULL. p_target and p_typmod are
-- the column's: an array column needs its type, a decimal that does not fit numeric(p, s) is refused. Errors: 22P02.
CREATE FUNCTION synchro._wire_value(p_type text, p_value json, p_target oid DEFAULT 0, p_typmod int DEFAULT -1) RETURNS text
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'synchro_wire_value';

-- Strict I-JSON: raises invalid_request for repeated names, U+0000, surrogates, noncharacters, depth, numbers beyond binary64.
CREATE FUNCTION synchro._json_strict(p_json text) RETURNS void
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'synchro_json_strict';

-- RFC 8785 text; raises like _json_strict.
CREATE FUNCTION synchro._jcs(p_json json) RETURNS text
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'synchro_jcs';

-- Fingerprints of a push request and of one of its mutations. They check the whole shape, the matrix of operations and the limits
-- and raise invalid_request. p_listed: fields as a list, as in the test vectors.
CREATE FUNCTION synchro._batch_fingerprint(p_user text, p_batch json, p_listed boolean DEFAULT false) RETURNS bytea
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'synchro_batch_fingerprint';

CREATE FUNCTION synchro._mutation_fingerprint(p_user text, p_client text, p_mutation json, p_listed boolean DEFAULT false) RETURNS bytea
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'synchro_mutation_fingerprint';

-- Hash of a manifest body, with or without schema_hash (then verified). Errors: 22023 with the broken rule.
CREATE FUNCTION synchro._manifest_hash(p_body json) RETURNS text
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'synchro_manifest_hash';

-- What a client computes from wire JSON and a manifest body alone: for checking what was sent. Errors: 22023.
CREATE FUNCTION synchro._typed_value(p_field json, p_value json) RETURNS bytea
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'synchro_typed_value';

CREATE FUNCTION synchro._verify_identity(p_manifest json, p_table_id text, p_key json) RETURNS bytea
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'synchro_verify_identity';

CREATE FUNCTION synchro._verify_row_digest(p_manifest json, p_table_id text, p_key json, p_row json, p_server_version text) RETURNS bytea
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'synchro_verify_row_digest';

CREATE FUNCTION synchro._verify_scope_digest(p_schema_hash text, p_scope_id text, p_identities bytea[], p_digests bytea[]) RETURNS text
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'synchro_verify_scope_digest';
