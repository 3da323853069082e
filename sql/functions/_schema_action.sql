CREATE FUNCTION synchro._schema_action(p_version bigint, p_hash text, p_reset boolean, p_current bigint, p_assigned text[],
  OUT o_action text, OUT o_reason text, OUT o_affected text[], OUT o_reset boolean) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- What a client that has manifest (p_version, p_hash) must do to get to the current one; 0 is the fresh sentinel.
-- o_action: none, replace, rebuild_local or unsupported (with o_reason). o_affected: assigned scopes to rebuild, in octet order.
-- o_reset: the client asked for a reset, and gets it.
DECLARE
  v_step record;
BEGIN
  SELECT l.* INTO v_step FROM synchro._schema_lineage(p_current) l WHERE l.schema_version = p_version AND l.schema_hash = p_hash;
  o_affected := '{}';
  o_reset := false;
  IF v_step.schema_version = p_current THEN
    o_action := 'none';
    RETURN;
  ELSIF p_version = 0 THEN
    o_action := 'replace';
    RETURN;
  ELSIF p_reset THEN
    o_reset := true;
    o_affected := p_assigned;
  ELSIF v_step.schema_version IS NULL THEN
    o_action := 'unsupported';
    o_reason := 'unknown_schema_lineage';
    RETURN;
  ELSIF v_step.incompatible THEN
    o_action := 'unsupported';
    o_reason := 'incompatible_schema_transition';
    RETURN;
  ELSE
    o_affected := ARRAY(SELECT s.scope_id FROM synchro.scope s
                         WHERE s.scope_id = ANY (p_assigned) AND s.affected_version > p_version ORDER BY s.scope_id);
  END IF;
  o_action := CASE WHEN o_affected = '{}' THEN 'replace' ELSE 'rebuild_local' END;
END
$fn$;
