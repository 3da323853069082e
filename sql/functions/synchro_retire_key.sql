CREATE FUNCTION synchro.synchro_retire_key(p_key_id text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Ends a key that was rotated out, for good: nothing that it signed is believed any more, and its secret is erased. Clients with a cursor of it
-- are answered 400 and must begin anew; so it is retired when they have all pulled since the rotation, or when it is known to others.
-- Retiring a fence key waits until nothing in the WAL that still has to be captured can be signed with it.
-- Errors: 22023 for an unknown key, 55000 for an active one, or when the wait is over ten seconds or capture does not run; 25000 for a
-- fence key in a transaction that has written, or is not READ COMMITTED. Locks: secret_key against rotations.
DECLARE
  v_key   synchro.secret_key;
  v_wrote boolean := pg_current_xact_id_if_assigned() IS NOT NULL;
  v_since timestamptz;
BEGIN
  -- With this lock whoever rotated has told every backend to read the keys again.
  LOCK TABLE synchro.secret_key IN SHARE ROW EXCLUSIVE MODE;
  SELECT k.* INTO v_key FROM synchro.secret_key k WHERE k.key_id = p_key_id;
  IF NOT FOUND THEN
    RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'there is no such key', HINT = 'synchro.secret_key has the keys, for superusers; synchro_rotate_keys() returned the ids of those that it replaced';
  ELSIF v_key.state = 'active' THEN
    RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = 'the key is in use', HINT = 'Call synchro.synchro_rotate_keys() first.';
  ELSIF v_key.state = 'retired' THEN
    RETURN;
  END IF;
  IF v_key.purpose = 'fence' THEN
    IF v_wrote OR current_setting('transaction_isolation') <> 'read committed' THEN
      RAISE EXCEPTION USING ERRCODE = '25000', MESSAGE = 'a fence key is retired in a transaction of its own, in READ COMMITTED';
    END IF;
    v_since := clock_timestamp();
    PERFORM synchro._require_capture(v_since);
    -- Transactions that began before may have the key in their backend's cache.
    WHILE EXISTS (SELECT FROM pg_stat_activity a
                   WHERE a.datname = current_database() AND a.pid <> pg_backend_pid() AND a.xact_start < v_since
                     AND a.backend_type NOT IN ('autovacuum worker', 'walsender'))
       OR EXISTS (SELECT FROM pg_prepared_xacts x WHERE x.database = current_database() AND x.prepared < v_since) LOOP
      IF clock_timestamp() > v_since + interval '10 seconds' THEN
        RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = 'transactions that began before the call may still use the key',
                              HINT = 'Repeat the call when they have ended.';
      END IF;
      PERFORM pg_sleep(0.05);
      PERFORM pg_stat_clear_snapshot();
    END LOOP;
    IF NOT synchro._await_progress(synchro._emit_marker(), 10000) THEN
      RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = 'what the key has signed is not captured yet',
                            HINT = 'Repeat the call when capture has caught up.';
    END IF;
  END IF;
  UPDATE synchro.secret_key k SET state = 'retired', secret = '' WHERE k.purpose = v_key.purpose AND k.key_id = p_key_id;
END
$fn$;
