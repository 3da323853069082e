CREATE FUNCTION synchro._lock_stage(p_scope_id text, p_wait boolean) RETURNS boolean LANGUAGE c VOLATILE STRICT
AS 'MODULE_PATHNAME', 'synchro_lock_stage';
COMMENT ON FUNCTION synchro._lock_stage(text, boolean) IS
  'One session at a time stages a scope, to the end of its transaction. False: another one does, and p_wait is false. The lock is none '
  'that SQL could take.';
