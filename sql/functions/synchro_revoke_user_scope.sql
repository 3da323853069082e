CREATE FUNCTION synchro.synchro_revoke_user_scope(p_user_id text, p_scope_id text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Removes an explicit grant; for the default scope user:<user> it revokes that. Other sources of the scope stay in force.
-- Errors: 22023; 55000 when there is no such grant.
BEGIN
  PERFORM synchro._check_user_id(p_user_id), synchro._check_scope_id(p_scope_id);
  IF p_scope_id = 'user:' || p_user_id THEN
    INSERT INTO synchro.user_scope AS u (user_id, scope_id, granted) VALUES (p_user_id, p_scope_id, false)
    ON CONFLICT (user_id, scope_id) DO UPDATE SET granted = false WHERE u.granted;
    RETURN;
  END IF;
  DELETE FROM synchro.user_scope WHERE user_id = p_user_id AND scope_id = p_scope_id;
  IF NOT FOUND THEN
    RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = 'the scope was not granted to the user';
  END IF;
END
$fn$;
