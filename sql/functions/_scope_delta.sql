CREATE FUNCTION synchro._scope_delta(p_assigned text[], p_presented text[]) RETURNS text LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- {"add":[{"id","cursor"}],"remove":[id]}: what turns the scopes that a client presented into those assigned to it, both in the order
-- of their octets. It depends on the request alone, not on what was answered before, so a lost response repairs itself.
BEGIN
  IF p_assigned = p_presented THEN
    RETURN '{"add":[],"remove":[]}';
  END IF;
  RETURN '{"add":[' || coalesce((SELECT string_agg('{"id":' || to_json(a.scope_id) || ',"cursor":null}', ',' ORDER BY a.scope_id COLLATE "C")
                                   FROM (SELECT unnest(p_assigned) EXCEPT SELECT unnest(p_presented)) a (scope_id)), '')
      || '],"remove":[' || coalesce((SELECT string_agg(to_json(r.scope_id)::text, ',' ORDER BY r.scope_id COLLATE "C")
                                       FROM (SELECT unnest(p_presented) EXCEPT SELECT unnest(p_assigned)) r (scope_id)), '') || ']}';
END
$fn$;
