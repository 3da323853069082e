-- Registered functions, in C: checked, pinned, evaluated as their owner in a security-restricted operation.

CREATE FUNCTION synchro._check_function(p_function oid, p_kind text, p_owner oid, p_key_type oid) RETURNS text LANGUAGE c STABLE STRICT
SET search_path = pg_catalog, synchro, pg_temp
AS 'MODULE_PATHNAME', 'synchro_check_function';
COMMENT ON FUNCTION synchro._check_function(oid, text, oid, oid) IS
  'The first rule of registered functions that this one breaks, or NULL. p_kind: membership, impact or assignment. p_owner: the role '
  'to whom, or to a role of whom, it must belong. p_key_type: of the argument of a membership function.';

CREATE FUNCTION synchro._function_reads(p_function oid, p_own_view oid, p_own_key smallint)
RETURNS TABLE (relation oid, attnum smallint, pinned boolean) LANGUAGE c STABLE
SET search_path = pg_catalog, synchro, pg_temp
AS 'MODULE_PATHNAME', 'synchro_function_reads';
COMMENT ON FUNCTION synchro._function_reads(oid, oid, smallint) IS
  'What the body of a function reads, reference by reference: the relation, a column of it (0 its whole row, NULL for the reference itself). '
  'pinned: the reference reads only the row of p_own_view with p_own_key = $1.';

CREATE FUNCTION synchro._image_members(p_function oid) RETURNS SETOF text LANGUAGE c STABLE STRICT
SET search_path = pg_catalog, synchro, pg_temp
AS 'MODULE_PATHNAME', 'synchro_image_members';
COMMENT ON FUNCTION synchro._image_members(oid) IS
  'Names of the members of row images that an impact function reads; NULL for something that it does with a whole image of which that cannot be told.';

CREATE FUNCTION synchro._definition_hash(p_function oid) RETURNS text LANGUAGE c STABLE STRICT
SET search_path = pg_catalog, synchro, pg_temp
AS 'MODULE_PATHNAME', 'synchro_definition_hash';
COMMENT ON FUNCTION synchro._definition_hash(oid) IS
  'SHA-256 of pg_get_functiondef, in hex; NULL when there is no such function.';

CREATE FUNCTION synchro._make_twin(p_function oid, p_name name) RETURNS oid LANGUAGE c VOLATILE STRICT
SET search_path = pg_catalog, synchro, pg_temp
AS 'MODULE_PATHNAME', 'synchro_make_twin';
COMMENT ON FUNCTION synchro._make_twin(oid, name) IS
  'Creates or replaces synchro_twin.<p_name>: the registered function without its SET clause, so that the planner can inline it. Its '
  'owner gets USAGE on the schema. It is dropped with the function.';

CREATE FUNCTION synchro._joined_columns(p_function oid) RETURNS TABLE (relation oid, attnum smallint) LANGUAGE c STABLE STRICT ROWS 10
SET search_path = pg_catalog, synchro, pg_temp
AS 'MODULE_PATHNAME', 'synchro_joined_columns';
COMMENT ON FUNCTION synchro._joined_columns(oid) IS
  'Columns of relations that the parsed body of a function compares for equality.';

CREATE FUNCTION synchro._evaluate_membership(p_rel_no int, p_generation bigint, p_keys text[])
RETURNS TABLE (ord int, scope_id text) LANGUAGE c VOLATILE STRICT ROWS 1000
SET search_path = pg_catalog, synchro, pg_temp
AS 'MODULE_PATHNAME', 'synchro_evaluate_membership';
COMMENT ON FUNCTION synchro._evaluate_membership(int, bigint, text[]) IS
  'The scopes of rows, by the position of their key in p_keys and in octet order, without duplicates, from the projections as the '
  'caller''s snapshot has them. Errors: evaluation_failed (SY201) when the function or a result is not what it must be; '
  'conditions of the server as they are.';

CREATE FUNCTION synchro._evaluate_impact(p_generation bigint, p_target int, p_source int, p_old jsonb[], p_new jsonb[])
RETURNS TABLE (ord int, key text) LANGUAGE c VOLATILE STRICT ROWS 1000
SET search_path = pg_catalog, synchro, pg_temp
AS 'MODULE_PATHNAME', 'synchro_evaluate_impact';
COMMENT ON FUNCTION synchro._evaluate_impact(bigint, int, int, jsonb[], jsonb[]) IS
  'Keys of the target''s rows that changes of source rows affect, by the position of the change and in octet order, without duplicates. '
  'p_old and p_new: images of one length, NULL where there is none. Keys have the text form of fences. Errors: as _evaluate_membership.';

CREATE FUNCTION synchro._evaluate_assignment(p_user_id text) RETURNS SETOF text LANGUAGE c VOLATILE STRICT ROWS 10
SET search_path = pg_catalog, synchro, pg_temp
AS 'MODULE_PATHNAME', 'synchro_evaluate_assignment';
COMMENT ON FUNCTION synchro._evaluate_assignment(text) IS
  'The scopes that the assignment function gives a user, in octet order, without duplicates; none when no function is registered. '
  'Errors: sync_integrity_failure.';
