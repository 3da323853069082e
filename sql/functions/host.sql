CREATE FUNCTION synchro._worker_status()
RETURNS TABLE (pid int, core_pid int, host text, state text, started_at timestamptz, last_error text, restarts bigint)
LANGUAGE c VOLATILE STRICT PARALLEL SAFE
SET search_path = pg_catalog, synchro, pg_temp
AS 'MODULE_PATHNAME', 'synchro_worker_status';
COMMENT ON FUNCTION synchro._worker_status() IS
  'The background worker of this database, from shared memory: no row when synchro.database does not name the database, '
  'pid NULL when the worker is not running, core_pid NULL when the Go core is not. restarts counts cores since the server '
  'started. No locks.';

CREATE FUNCTION synchro._worker_wake() RETURNS boolean
LANGUAGE c VOLATILE STRICT PARALLEL SAFE
SET search_path = pg_catalog, synchro, pg_temp
AS 'MODULE_PATHNAME', 'synchro_worker_wake';
COMMENT ON FUNCTION synchro._worker_wake() IS
  'Makes the core of this database look for work at once instead of at its next timer; false when no worker runs. No locks.';
