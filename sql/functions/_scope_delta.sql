CREATE FUNCTION synchro._scope_delta(p_assigned text[], p_presented text[]) RETURNS text LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- {"add":[{"id","cursor"}],"remove":[id]}: what turns the scopes that a client presented into those assigned to it. It depends on
-- the request alone, not on what was answered before, so a lost response repairs itself.
BEGIN
  RETURN '{"add":[' || coalesce((SELECT string_agg('{"id":' || to_json(a.scope_id) || ',"cursor":null}', ',' ORDER BY a.scope_id COLLATE "C")
                                 FROM unnest(p_assigned) a (scope_id) WHERE a.scope_id <> ALL (p_presented)), '')
      || '],"remove":[' || coalesce((SELECT string_agg(to_json(r.scope_id)::text, ',' ORDER BY r.scope_id COLLATE "C")
                                     FROM unnest(p_presented) r (scope_id) WHERE r.scope_id <> ALL (p_assigned)), '') || ']}';
END
$fn$;
