-- One page of a pull (extension/pull_page.c): the effects after each cursor, merged by position, scope, table and key, at most p_limit,
-- fewer where rows are large.
-- p_cursors: valid ones in the order of their scope ids, of scopes that may have been taken away; p_assigned: in the same order.
-- p_boundary: commit of B.
-- o_changes: the rendered changes, comma separated. o_more: some candidate is left.
-- o_valid: cursors of assigned scopes. o_cursors: the same, advanced to the last effect delivered; without more, B is meant.
-- Errors: SY011 when a projection row is missing or two effects of a scope share a position.
CREATE FUNCTION synchro._pull_page(p_cursors synchro.scope_cursor[], p_assigned text[], p_schema_version bigint, p_boundary pg_lsn,
  p_limit int, OUT o_changes text, OUT o_more boolean, OUT o_valid synchro.scope_cursor[], OUT o_cursors synchro.scope_cursor[])
LANGUAGE c VOLATILE STRICT AS 'MODULE_PATHNAME', 'synchro_pull_page';
