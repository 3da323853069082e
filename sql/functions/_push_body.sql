CREATE FUNCTION synchro._push_body(p_client_no bigint, p_batch_id uuid) RETURNS text LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- The response of a recorded batch, today and for ever: the stored outcomes of its mutations, byte for byte, in its order.
DECLARE
  v_batch    synchro.push_batch;
  v_found    int;
  v_accepted text;
  v_rejected text;
BEGIN
  SELECT b.* INTO STRICT v_batch FROM synchro.push_batch b WHERE b.client_no = p_client_no AND b.batch_id = p_batch_id;
  SELECT count(*), string_agg(o.outcome, ',') FILTER (WHERE o.accepted), string_agg(o.outcome, ',') FILTER (WHERE NOT o.accepted)
    INTO v_found, v_accepted, v_rejected
    FROM (SELECT m.outcome, m.accepted FROM unnest(v_batch.mutations) WITH ORDINALITY AS n(id, ord)
            JOIN synchro.push_mutation m ON m.client_no = p_client_no AND m.mutation_id = n.id ORDER BY n.ord) AS o;
  IF v_found <> cardinality(v_batch.mutations) THEN
    PERFORM synchro._raise('sync_integrity_failure');
  END IF;
  RETURN '{"batch_id":"' || p_batch_id || '","server_time":"' || synchro._wire_time(v_batch.created_at)
         || '","accepted":[' || coalesce(v_accepted, '') || '],"rejected":[' || coalesce(v_rejected, '') || ']}';
END
$fn$;
