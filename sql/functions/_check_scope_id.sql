CREATE FUNCTION synchro._check_scope_id(p_scope_id text) RETURNS void LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- A scope id is a non-blank text of at most 255 octets, not counting user:, with a portable form. Errors: 22023.
BEGIN
  IF coalesce(btrim(p_scope_id), '') = '' OR octet_length(regexp_replace(p_scope_id, '^user:', '')) > 255
     OR NOT synchro._representable('text'::regtype, false, p_scope_id) THEN
    RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'a scope id is a non-blank text of at most 255 octets';
  END IF;
END
$fn$;
