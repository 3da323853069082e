-- Fences and messages in the WAL, in C. No SET clauses: the code looks nothing up by an unqualified name, and per row they would
-- cost more than the fence itself.

CREATE FUNCTION synchro.synchro_fence() RETURNS trigger LANGUAGE c
AS 'MODULE_PATHNAME', 'synchro_fence';
COMMENT ON FUNCTION synchro.synchro_fence() IS
  'AFTER INSERT OR UPDATE OR DELETE FOR EACH ROW: emits the fence of the row operation. Errors: 22P02 a value without portable '
  'form, 23514 the key changed, 54000 the row is too large, 0A000 COPY FREEZE, 55000 after the registration was completed.';

CREATE FUNCTION synchro.synchro_key_guard() RETURNS trigger LANGUAGE c
AS 'MODULE_PATHNAME', 'synchro_key_guard';
COMMENT ON FUNCTION synchro.synchro_key_guard() IS
  'BEFORE UPDATE OF <key> FOR EACH ROW: refuses a change of the key with 23514.';

CREATE FUNCTION synchro.synchro_truncate_guard() RETURNS trigger LANGUAGE c
AS 'MODULE_PATHNAME', 'synchro_truncate_guard';
COMMENT ON FUNCTION synchro.synchro_truncate_guard() IS
  'BEFORE TRUNCATE FOR EACH STATEMENT: refuses it with 0A000.';

CREATE FUNCTION synchro._secret_key_changed() RETURNS trigger LANGUAGE c
AS 'MODULE_PATHNAME', 'synchro_secret_key_changed';
COMMENT ON FUNCTION synchro._secret_key_changed() IS
  'Tells every backend, at commit, to read the keys again.';
CREATE TRIGGER secret_key_changed AFTER INSERT OR UPDATE OR DELETE ON synchro.secret_key
  FOR EACH STATEMENT EXECUTE FUNCTION synchro._secret_key_changed();

CREATE FUNCTION synchro._new_version() RETURNS text LANGUAGE c VOLATILE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'synchro_new_version';
COMMENT ON FUNCTION synchro._new_version() IS
  'A fresh opaque version: base64url of 96 random bits.';

CREATE FUNCTION synchro._siphash(p_key bytea, p_data bytea) RETURNS bytea LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'synchro_siphash';
COMMENT ON FUNCTION synchro._siphash(bytea, bytea) IS
  'SipHash-2-4 with 128-bit output; the key has 16 octets.';

CREATE FUNCTION synchro._emit_activation(p_generation bigint) RETURNS void LANGUAGE c VOLATILE STRICT
AS 'MODULE_PATHNAME', 'synchro_emit_activation';
COMMENT ON FUNCTION synchro._emit_activation(bigint) IS
  'Message A: the worker activates the generation at the commit of this transaction.';

CREATE FUNCTION synchro._emit_switch(p_generation bigint) RETURNS void LANGUAGE c VOLATILE STRICT
AS 'MODULE_PATHNAME', 'synchro_emit_switch';
COMMENT ON FUNCTION synchro._emit_switch(bigint) IS
  'Message S: the worker activates the generation, which it has staged, at the commit of this transaction.';

CREATE FUNCTION synchro._emit_push(p_client_no bigint, p_write_epoch bigint) RETURNS void LANGUAGE c VOLATILE STRICT
AS 'MODULE_PATHNAME', 'synchro_emit_push';
COMMENT ON FUNCTION synchro._emit_push(bigint, bigint) IS
  'Message P: this transaction is the accepted push of the client with that write epoch.';

CREATE FUNCTION synchro._emit_marker() RETURNS pg_lsn LANGUAGE c VOLATILE STRICT
AS 'MODULE_PATHNAME', 'synchro_emit_marker';
COMMENT ON FUNCTION synchro._emit_marker() IS
  'Message M, flushed and outside of the transaction. Returns the LSN to wait for with _await_progress.';

CREATE FUNCTION synchro._emit_compaction(p_stale_before timestamptz, p_batch_size int) RETURNS bigint LANGUAGE c VOLATILE STRICT
AS 'MODULE_PATHNAME', 'synchro_emit_compaction';
COMMENT ON FUNCTION synchro._emit_compaction(timestamptz, int) IS
  'Message C, flushed and outside of the transaction: asks the worker for a compaction. Returns the number of the request.';

CREATE FUNCTION synchro._await_progress(p_lsn pg_lsn, p_timeout_ms int) RETURNS boolean LANGUAGE c VOLATILE STRICT
AS 'MODULE_PATHNAME', 'synchro_await_progress';
COMMENT ON FUNCTION synchro._await_progress(pg_lsn, int) IS
  'Waits until everything below the LSN is materialized, whatever snapshot the transaction has; false when the time was over first.';

CREATE FUNCTION synchro._push_context(p_client_no bigint, p_user_id text, p_claims jsonb) RETURNS void LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'synchro_push_context';
COMMENT ON FUNCTION synchro._push_context(bigint, text, jsonb) IS
  'Begins the push context of this (sub)transaction; p_client_no NULL ends it and writes the fences since to push_fence.';

CREATE FUNCTION synchro._seal_registration() RETURNS void LANGUAGE c VOLATILE STRICT
AS 'MODULE_PATHNAME', 'synchro_seal_registration';
COMMENT ON FUNCTION synchro._seal_registration() IS
  'The generation of this transaction is complete: a fence after it raises 55000.';

-- For row-level security policies of the application.
CREATE FUNCTION synchro.synchro_subject() RETURNS text LANGUAGE c STABLE STRICT PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'synchro_subject';
COMMENT ON FUNCTION synchro.synchro_subject() IS
  'The user whose push is being applied; NULL outside a push.';

CREATE FUNCTION synchro.synchro_subject(p_claim text) RETURNS jsonb LANGUAGE c STABLE STRICT PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'synchro_subject_claim';
COMMENT ON FUNCTION synchro.synchro_subject(text) IS
  'A claim of the token of the user whose push is being applied; NULL when there is none.';
