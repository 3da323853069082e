CREATE FUNCTION synchro.synchro_subject() RETURNS text LANGUAGE c STABLE STRICT PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'synchro_subject';
COMMENT ON FUNCTION synchro.synchro_subject() IS
  'The user whose push is being applied; NULL outside a push.';

CREATE FUNCTION synchro.synchro_subject(p_claim text) RETURNS jsonb LANGUAGE c STABLE STRICT PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'synchro_subject_claim';
COMMENT ON FUNCTION synchro.synchro_subject(text) IS
  'A claim of the token of the user whose push is being applied; NULL when there is none.';
