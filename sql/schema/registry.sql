-- Registry: written by registration calls, insert-only; a generation is current once progress names it.

CREATE TABLE synchro.relation (
  rel_no            int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  relation_id       uuid NOT NULL UNIQUE DEFAULT pg_catalog.gen_random_uuid(),
  table_id          uuid UNIQUE,            -- NULL until it is asked for or synced: a capture dependency has none
  physical_schema   name NOT NULL,
  physical_relation name NOT NULL,
  relation_oid      oid  UNIQUE,              -- NULL: the relation became another one (_renew_relation)
  view_name         name UNIQUE,            -- in synchro_projection; NULL until prepared
  view_columns      name[]
);

-- Captured columns: columns of synchro_data.r_<rel_no> are named c<attnum>.
CREATE TABLE synchro.captured_column (
  rel_no       int NOT NULL REFERENCES synchro.relation,
  attnum       smallint NOT NULL,
  column_name  name NOT NULL,
  field_id     uuid NOT NULL UNIQUE DEFAULT pg_catalog.gen_random_uuid(),
  source_type  oid NOT NULL,               -- pg_attribute.atttypid
  storage_type text NOT NULL,              -- type of c<attnum>: a pg_catalog base type, or text for any other type
  generated    boolean NOT NULL,           -- stored generated column: its value travels in the fence
  PRIMARY KEY (rel_no, attnum)
);

CREATE TABLE synchro.relation_index (
  index_id  uuid PRIMARY KEY DEFAULT pg_catalog.gen_random_uuid(),
  rel_no    int NOT NULL REFERENCES synchro.relation,
  index_oid oid NOT NULL UNIQUE
);

CREATE TABLE synchro.manifest (
  schema_version      bigint PRIMARY KEY CHECK (schema_version > 0),
  schema_hash         text NOT NULL UNIQUE CHECK (schema_hash ~ '^[0-9a-f]{64}$'),
  parent_version      bigint REFERENCES synchro.manifest,
  transition_class    text NOT NULL CHECK (transition_class IN ('initial', 'class_2', 'class_3', 'class_4')),
  compatibility_floor bigint NOT NULL CHECK (compatibility_floor > 0),
  body                text NOT NULL,       -- RFC 8785 text, with schema_hash
  created_at          timestamptz NOT NULL DEFAULT pg_catalog.now(),
  CHECK ((parent_version IS NULL) = (transition_class = 'initial')),
  CHECK (CASE transition_class WHEN 'class_2' THEN compatibility_floor <= parent_version
                               ELSE compatibility_floor = schema_version END)
);

-- Physical mapping of a manifest's fields; immutable like the manifest.
CREATE TABLE synchro.manifest_field (
  schema_version bigint NOT NULL REFERENCES synchro.manifest,
  rel_no         int NOT NULL REFERENCES synchro.relation,
  field_id       uuid NOT NULL,
  column_name    name NOT NULL,
  attnum         smallint NOT NULL,
  type           text NOT NULL,            -- portable type
  as_text        boolean NOT NULL,         -- synced as canonical text (p_text_columns)
  nullable       boolean NOT NULL,
  writable       boolean NOT NULL,
  is_key         boolean NOT NULL,
  PRIMARY KEY (schema_version, rel_no, field_id)
);

CREATE TABLE synchro.registry_generation (
  generation     bigint PRIMARY KEY CHECK (generation > 0),
  schema_version bigint REFERENCES synchro.manifest,   -- NULL only inside the registering transaction
  base           bigint,                               -- the generation that it was made from
  staged         boolean NOT NULL DEFAULT false,       -- the worker stages it first; else active from its own commit on
  actor          name NOT NULL,                        -- session user that registered
  xid            xid8 NOT NULL DEFAULT pg_catalog.pg_current_xact_id(),
  created_at     timestamptz NOT NULL DEFAULT pg_catalog.now()
);

-- The complete configuration of each generation. A capture dependency has no membership, no push and no client-visible columns.
CREATE TABLE synchro.registration (
  generation          bigint NOT NULL REFERENCES synchro.registry_generation,
  rel_no              int NOT NULL REFERENCES synchro.relation,
  since               bigint NOT NULL,     -- generation that (last) baselined the relation
  kind                text NOT NULL CHECK (kind IN ('synced', 'capture_dependency')),
  composition         text CHECK (composition IN ('single_scope', 'multi_scope')),
  push_policy         text CHECK (push_policy IN ('enabled', 'read_only')),
  key_column          name NOT NULL,
  key_attnum          smallint NOT NULL,
  key_type            oid NOT NULL,        -- one of the built-in types of docs/registration.md
  pk_type             text NOT NULL CHECK (pk_type IN ('string', 'int', 'int64')),
  membership_function oid,
  membership_twin     oid,                 -- inlinable copy in synchro_twin
  membership_hash     text,                -- SHA-256 of the function's definition, hex
  max_scope_fanout    int CHECK (max_scope_fanout BETWEEN 1 AND 10000),
  created_at_column   name,
  updated_at_column   name,
  deleted_at_column   name,
  sync_columns        name[] NOT NULL,     -- synced, key included, attnum order; '{}' for a capture dependency
  text_columns        name[] NOT NULL,
  captured_columns    name[],              -- of a capture dependency, key included, attnum order
  twin_hash           text,                -- of the twin's: it stands in for a function that was replaced and registered again
  required_columns    name[] NOT NULL DEFAULT '{}', -- synced and never NULL, as clients are told; the fence sees to it
  amends              boolean NOT NULL DEFAULT false, -- of the registering transaction: what is materialized may be kept
  PRIMARY KEY (generation, rel_no),
  CHECK (CASE kind WHEN 'synced' THEN num_nulls(composition, push_policy, membership_function, membership_hash, max_scope_fanout) = 0
                                      AND captured_columns IS NULL
                   ELSE num_nonnulls(composition, push_policy, membership_function, membership_twin, membership_hash, twin_hash, max_scope_fanout,
                                     created_at_column, updated_at_column, deleted_at_column) = 0
                        AND sync_columns = '{}' AND text_columns = '{}' AND required_columns = '{}' AND captured_columns IS NOT NULL END)
);

-- Which changes of a source make which rows of a target be evaluated again. Target = source: rows affect their siblings.
CREATE TABLE synchro.membership_dependency (
  generation      bigint NOT NULL REFERENCES synchro.registry_generation,
  target_rel_no   int NOT NULL REFERENCES synchro.relation,
  source_rel_no   int NOT NULL REFERENCES synchro.relation,
  dependency_id   uuid NOT NULL DEFAULT pg_catalog.gen_random_uuid(),
  impact_function oid NOT NULL,
  impact_twin     oid,                     -- inlinable copy in synchro_twin
  impact_hash     text NOT NULL,           -- SHA-256 of the function's definition, hex
  source_attnums  smallint[] NOT NULL,     -- the declared columns of the source, ascending
  max_impact_rows int NOT NULL CHECK (max_impact_rows BETWEEN 1 AND 1000),
  twin_hash       text,                    -- as in registration
  PRIMARY KEY (generation, target_rel_no, source_rel_no)
);

-- What a registration says that its changed rule affects; without rows, the server finds out.
CREATE TABLE synchro.declared_scope (
  generation bigint NOT NULL REFERENCES synchro.registry_generation,
  rel_no     int NOT NULL REFERENCES synchro.relation,
  scope_id   text COLLATE "C" NOT NULL,
  PRIMARY KEY (generation, rel_no, scope_id)
);

-- Shared scopes, explicit grants and revocations, the assignment function.
CREATE TABLE synchro.shared_scope (
  scope_id text COLLATE "C" PRIMARY KEY,
  portable boolean NOT NULL
);

CREATE TABLE synchro.user_scope (
  user_id  text COLLATE "C" NOT NULL,
  scope_id text COLLATE "C" NOT NULL,
  granted  boolean NOT NULL,               -- false: revoked (only meaningful for the default scope)
  PRIMARY KEY (user_id, scope_id)
);

CREATE TABLE synchro.assignment_function (
  one             boolean PRIMARY KEY DEFAULT true CHECK (one),
  function_oid    oid NOT NULL,
  function_schema name NOT NULL,
  function_name   name NOT NULL,
  max_scopes      int CHECK (max_scopes BETWEEN 1 AND 1000),
  definition_hash text NOT NULL,
  actor           name NOT NULL
);

-- Keys. Purposes: fence (SipHash, 16 octets), cursor, rebuild, seed_page, seed_receipt (HMAC, 32 octets).
CREATE TABLE synchro.secret_key (
  purpose    text NOT NULL,
  key_id     text NOT NULL,
  secret     bytea NOT NULL,
  state      text NOT NULL CHECK (state IN ('active', 'verify_only', 'retired')),
  created_at timestamptz NOT NULL DEFAULT pg_catalog.now(),
  PRIMARY KEY (purpose, key_id)
);
CREATE UNIQUE INDEX secret_key_active ON synchro.secret_key (purpose) WHERE state = 'active';
