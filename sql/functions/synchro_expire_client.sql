CREATE FUNCTION synchro.synchro_expire_client(p_user_id text, p_client_id text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Expires the generation of one client at once, as compaction does with those that are silent for long: nothing is kept for it any
-- more, and with its next connect it begins a new generation. Errors: 22023 when the user has no such client, 55000 when it is retired.
BEGIN
  UPDATE synchro.client c SET expired = true WHERE c.client_no = synchro._client_by_id(p_user_id, p_client_id) AND NOT c.expired;
END
$fn$;
