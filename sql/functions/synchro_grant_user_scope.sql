CREATE FUNCTION synchro.synchro_grant_user_scope(p_user_id text, p_scope_id text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Assigns one scope to one user, from the next connect or pull on; also undoes a revocation of the default scope.
-- Errors: 22023.
BEGIN
  PERFORM synchro._check_user_id(p_user_id), synchro._check_scope_id(p_scope_id);
  INSERT INTO synchro.user_scope AS u (user_id, scope_id, granted) VALUES (p_user_id, p_scope_id, true)
  ON CONFLICT (user_id, scope_id) DO UPDATE SET granted = true WHERE NOT u.granted;
END
$fn$;
