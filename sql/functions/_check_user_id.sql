CREATE FUNCTION synchro._check_user_id(p_user_id text) RETURNS void LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- A user id is a non-empty text of at most 255 octets. Errors: 22023.
BEGIN
  IF coalesce(p_user_id, '') = '' OR octet_length(p_user_id) > 255
     OR NOT synchro._representable('text'::regtype, false, p_user_id) THEN
    RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'a user id is a non-empty text of at most 255 octets';
  END IF;
END
$fn$;
