CREATE FUNCTION synchro._client_by_id(p_user_id text, p_client_id text) RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- The number of a client that an operator names. Errors: 22023 when either is empty, or the user has no such client.
DECLARE
  v_client bigint := (SELECT c.client_no FROM synchro.client c WHERE c.client_id = p_client_id AND c.user_id = p_user_id);
BEGIN
  IF coalesce(p_user_id, '') = '' OR coalesce(p_client_id, '') = '' THEN
    RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'a client is named by its user and its id';
  ELSIF v_client IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'the user has no such client', HINT = 'synchro.client has the clients, for superusers: user_id, client_id';
  END IF;
  RETURN v_client;
END
$fn$;
