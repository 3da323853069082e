-- Stages the live rows of one relation in a scope, the first of them as number p_ordinal, and returns how many there are (extension/stage.c).
-- Errors: SY011 when a row does not have its entry's version.
CREATE FUNCTION synchro._stage_rows(p_stage_no bigint, p_ordinal bigint, p_scope_no bigint, p_rel int, p_schema_version bigint)
RETURNS bigint LANGUAGE c VOLATILE STRICT AS 'MODULE_PATHNAME', 'synchro_stage_rows';
