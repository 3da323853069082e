CREATE FUNCTION synchro._push_wait(p_request text) RETURNS bigint[] LANGUAGE sql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- wait_on of a request that is answered capture_pending: its client's push, whose capture is announced. NULL when no push of it is pending:
-- then commits that a crash lost are made again, and nobody announces that they have come as far as the client has.
SELECT ARRAY[-c.client_no] FROM synchro.client c
 WHERE c.client_id = synchro._request_client(p_request)
   AND c.accepted_write_epoch > coalesce((SELECT m.write_epoch FROM synchro.client_materialized m WHERE m.client_no = c.client_no), 0)
$fn$;
