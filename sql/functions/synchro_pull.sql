-- POST /sync/pull: one page of effects over the client's scopes, from materialized state alone (docs/protocol.md, extension/pull.c).
-- p_user_id: the authenticated user. p_request: the body. Returns status and exact body; a refusal leaves nothing behind.
-- wait_on: what would change an answer that says nothing new, in the worker's numbers (docs/architecture.md): the client's scopes;
-- 0, a scope's first effect, when one of them has had none; for capture_pending the client's push. Else NULL.
-- Errors: 25000 below REPEATABLE READ; errors of another class than SY are operational and propagate.
-- It has no search_path: setting one costs every pull, and what it executes itself names schemas and operators.
CREATE FUNCTION synchro.synchro_pull(p_user_id text, p_request text, p_claims jsonb DEFAULT NULL, OUT status int, OUT body text, OUT wait_on bigint[])
LANGUAGE c SECURITY DEFINER AS 'MODULE_PATHNAME', 'synchro_pull';
