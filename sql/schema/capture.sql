-- Capture state: written by the worker only.

-- One row. Boundary B of every pull is transaction_end(commit_lsn).
CREATE TABLE synchro.progress (
  one                 boolean PRIMARY KEY DEFAULT true CHECK (one),
  stream_generation   bigint NOT NULL,
  system_identifier   bigint NOT NULL,     -- identity of the stream: with timeline and database it must match the server
  timeline            int NOT NULL,
  database_oid        oid NOT NULL,
  slot_name           name,                -- NULL until the slot is established
  registry_generation bigint NOT NULL REFERENCES synchro.registry_generation,
  schema_version      bigint NOT NULL REFERENCES synchro.manifest,
  commit_lsn          pg_lsn NOT NULL,     -- commit record of the last materialized transaction
  end_lsn             pg_lsn NOT NULL,     -- its end: a transaction is already done when its commit LSN is below
  seen_lsn            pg_lsn NOT NULL,     -- everything below is materialized (markers, keepalives)
  start_lsn           pg_lsn NOT NULL DEFAULT '0/0', -- consistent point of the slot: the stream generation starts here
  committed_at        timestamptz,         -- commit time of that transaction at the source
  ignored_messages    bigint NOT NULL DEFAULT 0,
  heartbeat_at        timestamptz NOT NULL
) WITH (fillfactor = 10);

CREATE TABLE synchro.quarantine (
  quarantine_no     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  stream_generation bigint NOT NULL,
  commit_lsn        pg_lsn NOT NULL,
  event_ordinal     bigint,
  class             text NOT NULL,         -- bounded class, no free text
  rel_no            int,
  retryable         boolean NOT NULL DEFAULT true, -- false: rows may have changed unseen, so trying again would skip them
  created_at        timestamptz NOT NULL DEFAULT pg_catalog.now(),
  attempts          int NOT NULL DEFAULT 1,
  resolved_at       timestamptz,
  resolution        text CHECK (resolution IN ('retried', 'superseded', 'reconfigured', 'reset'))
);
CREATE UNIQUE INDEX quarantine_open ON synchro.quarantine ((true)) WHERE resolved_at IS NULL;

-- Relations that the stream is replayed without, up to the generation that has read all their rows anew, or that is without them. While
-- there is one, a block is open.
CREATE TABLE synchro.capture_recovery (
  rel_no        int PRIMARY KEY REFERENCES synchro.relation,
  generation    bigint NOT NULL,
  quarantine_no bigint NOT NULL             -- the block that is answered
);

-- Generations that have arrived in the stream and are not active yet, and those that will never be. The oldest pending one is being
-- staged, the others wait.
CREATE TABLE synchro.backfill (
  generation bigint PRIMARY KEY REFERENCES synchro.registry_generation,
  state      text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'complete', 'rejected')),
  rel_no     int,                          -- relation at work, or the one for which it was rejected
  last_key   text,                         -- of that relation, all up to here is staged; NULL: nothing
  staged     bigint NOT NULL DEFAULT 0,    -- rows, of all relations
  reason     text CHECK ((reason IS NOT NULL) = (state = 'rejected')),
  arrived_at timestamptz NOT NULL DEFAULT pg_catalog.now()
);

-- The edges of the generation that is being staged.
CREATE TABLE synchro.staged_membership (
  rel_no int NOT NULL,
  key    text COLLATE "C" NOT NULL,
  scopes bigint[],                         -- ascending; NULL: the row has changed, evaluate it again
  PRIMARY KEY (rel_no, key)
);
CREATE INDEX staged_membership_due ON synchro.staged_membership (rel_no, key) WHERE scopes IS NULL;

-- A scope without a row is at generation 1 with the floor generation_start and no effects.
CREATE TABLE synchro.scope (
  scope_no              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  scope_id              text COLLATE "C" NOT NULL UNIQUE,
  membership_generation bigint NOT NULL DEFAULT 1,
  retention_generation  bigint NOT NULL DEFAULT 1,
  floor_kind            text NOT NULL DEFAULT 'generation_start'
                        CHECK (floor_kind IN ('generation_start', 'effect', 'transaction_end')),
  floor_lsn             pg_lsn,
  floor_event           bigint,
  floor_effect          int,
  high_lsn              pg_lsn NOT NULL,   -- commit of the last effect: a digest cached at this value is current
  affected_version      bigint NOT NULL DEFAULT 0 -- the last manifest that rematerialized it: whoever holds an earlier one rebuilds
) WITH (fillfactor = 70);

-- One row per (scope, row). Only the latest effect of a row in a scope is ever delivered.
CREATE TABLE synchro.scope_entry (
  scope_no       bigint NOT NULL,
  commit_lsn     pg_lsn NOT NULL,
  event_ordinal  bigint NOT NULL,
  digest_schema  bigint NOT NULL,          -- manifest version of row_digest
  rel_no         int NOT NULL,
  effect_ordinal int NOT NULL,
  state          "char" NOT NULL,          -- l live, s source tombstone, x left
  key            bytea NOT NULL,           -- synchro._key_bytes: identity order
  server_version text COLLATE "C" NOT NULL,-- of the row; for a left entry: at leaving
  row_digest     bytea,                    -- NULL when left
  PRIMARY KEY (scope_no, rel_no, key)
) WITH (fillfactor = 90);
-- Every entry is in one of these two, so that none costs more than one of them: what a scope holds, and what left it, which compaction may
-- delete. No two entries of a scope have one position; looking for some would only cost.
CREATE INDEX scope_entry_position ON synchro.scope_entry (scope_no, commit_lsn, event_ordinal, effect_ordinal)
  WITH (deduplicate_items = off) WHERE state <> 'x';
CREATE INDEX scope_entry_left ON synchro.scope_entry (scope_no, commit_lsn, event_ordinal, effect_ordinal)
  WITH (deduplicate_items = off) WHERE state = 'x';

-- Compactions that the worker has finished; the last ones are kept.
CREATE TABLE synchro.compaction (
  compaction_no   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  request         bigint UNIQUE,           -- number of the call that asked for it; NULL: it was due
  stale_before    timestamptz NOT NULL,    -- clients without an acknowledgement since were expired
  finished_at     timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
  failure         text,                    -- SQLSTATE of a requested one that failed
  expired_clients bigint NOT NULL DEFAULT 0,
  deleted_entries bigint NOT NULL DEFAULT 0,
  deleted_other   bigint NOT NULL DEFAULT 0 -- rows of rebuilds, tombstones, digests, checkpoints
);

-- Accepted pushes that are materialized: the client's highest write epoch seen in the stream.
CREATE TABLE synchro.client_materialized (
  client_no   bigint PRIMARY KEY,
  write_epoch bigint NOT NULL
) WITH (fillfactor = 50);
