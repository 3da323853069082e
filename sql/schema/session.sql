-- Written by sessions: clients, ledgers, push bookkeeping, rebuild stages, digest cache.

CREATE TABLE synchro.client (
  client_no            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  client_id            text COLLATE "C" NOT NULL UNIQUE,
  user_id              text COLLATE "C" NOT NULL,
  client_generation    bigint NOT NULL DEFAULT 1,
  confirmed            boolean NOT NULL DEFAULT false,  -- a later request has presented the generation
  expired              boolean NOT NULL DEFAULT false,
  retired_at           timestamptz,                     -- for ever: then the row is immutable
  scope_set_version    bigint NOT NULL DEFAULT 0,
  accepted_write_epoch bigint NOT NULL DEFAULT 0,
  created_at           timestamptz NOT NULL DEFAULT pg_catalog.now(),
  last_acknowledged_at timestamptz
);

CREATE TABLE synchro.client_scope (
  client_no    bigint NOT NULL REFERENCES synchro.client,
  scope_id     text COLLATE "C" NOT NULL,
  assigned     boolean NOT NULL,
  -- durable checkpoint: the last cursor presented by a successful pull
  ack_kind     text NOT NULL DEFAULT 'generation_start' CHECK (ack_kind IN ('generation_start', 'effect', 'transaction_end')),
  ack_lsn      pg_lsn,
  ack_event    bigint,
  ack_effect   int,
  PRIMARY KEY (client_no, scope_id)
) WITH (fillfactor = 70);
-- Whose acknowledgements compaction of a scope waits for.
CREATE INDEX client_scope_assigned ON synchro.client_scope (scope_id, client_no) WHERE assigned;

CREATE TABLE synchro.push_batch (
  client_no   bigint NOT NULL REFERENCES synchro.client,
  batch_id    uuid NOT NULL,
  fingerprint bytea NOT NULL,
  atomic      boolean NOT NULL,
  mutations   uuid[] NOT NULL,              -- in request order: the response is their outcomes (_push_body)
  created_at  timestamptz NOT NULL DEFAULT pg_catalog.now(),
  PRIMARY KEY (client_no, batch_id)
);

ALTER TABLE synchro.push_batch ALTER COLUMN mutations SET STORAGE EXTERNAL;

-- No foreign keys: a row is written with its batch, which has one.
CREATE TABLE synchro.push_mutation (
  client_no   bigint NOT NULL,
  mutation_id uuid NOT NULL,
  batch_id    uuid NOT NULL,
  fingerprint bytea NOT NULL,
  accepted    boolean NOT NULL,
  outcome     text NOT NULL,                -- exact bytes of the outcome object
  PRIMARY KEY (client_no, mutation_id)
);

-- Versions of rows written in push context, until the worker has materialized the transaction.
CREATE TABLE synchro.push_fence (
  rel_no         int NOT NULL,
  key            text COLLATE "C" NOT NULL,
  row_xmin       xid NOT NULL,
  server_version text COLLATE "C" NOT NULL,
  top_xid        xid8 NOT NULL DEFAULT pg_catalog.pg_current_xact_id(),
  op             "char" NOT NULL,
  ordinal        bigint NOT NULL            -- of the fence in its transaction: the last one of a row counts
);
CREATE INDEX push_fence_row ON synchro.push_fence (rel_no, key);

-- Version of a deleted row, written by the fence of the DELETE.
CREATE TABLE synchro.tombstone (
  rel_no         int NOT NULL,
  key            text COLLATE "C" NOT NULL,
  server_version text COLLATE "C" NOT NULL,
  deleted_at     timestamptz NOT NULL DEFAULT pg_catalog.now(),
  PRIMARY KEY (rel_no, key)
);

-- An immutable snapshot of one scope; sessions of the same scope and generations share it.
CREATE TABLE synchro.rebuild_stage (
  stage_no              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  scope_id              text COLLATE "C" NOT NULL,
  schema_version        bigint NOT NULL,
  stream_generation     bigint NOT NULL,
  membership_generation bigint NOT NULL,
  retention_generation  bigint NOT NULL,
  boundary_lsn          pg_lsn NOT NULL,    -- transaction_end(boundary_lsn)
  cardinality           bigint NOT NULL,
  digest                text NOT NULL,      -- 64 hex
  created_at            timestamptz NOT NULL DEFAULT pg_catalog.now()
);
CREATE INDEX rebuild_stage_scope ON synchro.rebuild_stage (scope_id, boundary_lsn);

-- Rows in identity order, some of a stage in each chunk (extension/stage.c). The records must stay as they are: compressing them would take
-- longer than all else.
CREATE TABLE synchro.rebuild_chunk (
  stage_no  bigint NOT NULL,
  ordinal   bigint NOT NULL,                -- zero-based, of the first row
  row_count int NOT NULL,
  records   text NOT NULL,                  -- rendered record objects, a comma and a newline between them
  PRIMARY KEY (stage_no, ordinal)
) WITH (toast_tuple_target = 8160);
ALTER TABLE synchro.rebuild_chunk ALTER COLUMN records SET STORAGE EXTERNAL;

CREATE TABLE synchro.rebuild_session (
  client_no         bigint NOT NULL REFERENCES synchro.client,
  rebuild_id        uuid NOT NULL,
  client_generation bigint NOT NULL,
  scope_id          text COLLATE "C" NOT NULL,
  stage_no          bigint NOT NULL,
  page_limit        int NOT NULL,
  write_epoch       bigint NOT NULL,
  issued_at         timestamptz NOT NULL DEFAULT pg_catalog.now(),  -- fixed: pages are byte-identical
  expires_at        timestamptz NOT NULL,
  rebuild_key       text NOT NULL,          -- ids of the keys that sign its tokens: a rotation changes no page
  cursor_key        text NOT NULL,
  completed         boolean NOT NULL DEFAULT false,  -- its last page was served: it pins nothing any more
  PRIMARY KEY (client_no, rebuild_id)
);
CREATE INDEX rebuild_session_pin ON synchro.rebuild_session (scope_id) WHERE NOT completed;
CREATE INDEX rebuild_session_expiry ON synchro.rebuild_session (expires_at);
CREATE INDEX rebuild_session_stage ON synchro.rebuild_session (stage_no);

CREATE TABLE synchro.scope_digest_cache (
  scope_no       bigint NOT NULL,
  schema_version bigint NOT NULL,
  high_lsn       pg_lsn NOT NULL,           -- valid while scope.high_lsn equals this
  cardinality    bigint NOT NULL,
  digest         text NOT NULL,
  PRIMARY KEY (scope_no, schema_version)
);
