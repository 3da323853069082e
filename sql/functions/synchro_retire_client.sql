CREATE FUNCTION synchro.synchro_retire_client(p_user_id text, p_client_id text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Ends a client for ever: every request of it, an exact replay too, is answered client_retired, nothing is kept for it, and its id never
-- comes back. Its ledgers stay; from now on they may be deleted. Retiring it again changes nothing.
-- Errors: 22023 when the user has no such client.
BEGIN
  UPDATE synchro.client c SET retired_at = now() WHERE c.client_no = synchro._client_by_id(p_user_id, p_client_id) AND c.retired_at IS NULL;
END
$fn$;
