-- Group roles (docs/security.md). NOLOGIN, created if absent, never dropped: other databases may use them.
DO $do$
DECLARE
  v_role text;
BEGIN
  IF pg_catalog.current_setting('server_encoding') OPERATOR(pg_catalog.<>) 'UTF8' THEN
    RAISE EXCEPTION USING ERRCODE = '0A000', MESSAGE = 'synchro needs a database with encoding UTF8';
  END IF;
  FOREACH v_role IN ARRAY ARRAY['synchro_owner', 'synchro_writer', 'synchro_adapter', 'synchro_seed',
                                'synchro_monitor', 'synchro_operator', 'synchro_worker'] LOOP
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname OPERATOR(pg_catalog.=) v_role) THEN
      EXECUTE pg_catalog.format('CREATE ROLE %I NOLOGIN', v_role);
    END IF;
  END LOOP;
END
$do$;

-- Health reads the lag and the synchronous state of the worker's stream.
GRANT pg_read_all_stats TO synchro_owner;

CREATE SCHEMA synchro_data;        -- one typed projection table per relation, written by the worker
CREATE SCHEMA synchro_projection;  -- views over them, read by membership and impact functions
CREATE SCHEMA synchro_twin;        -- private inlinable copies of registered functions
