CREATE FUNCTION synchro.synchro_register_shared_scope(p_scope_id text, p_portable boolean DEFAULT false) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Assigns the scope to every client, from its next connect or pull on. p_portable: it may be part of a seed.
-- Errors: 22023 for a scope id that is no shared one (user: is reserved) or a NULL flag.
BEGIN
  PERFORM synchro._check_scope_id(p_scope_id);
  IF starts_with(p_scope_id, 'user:') OR p_portable IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'a shared scope is not a user''s, and is portable or not';
  END IF;
  INSERT INTO synchro.shared_scope AS s (scope_id, portable) VALUES (p_scope_id, p_portable)
  ON CONFLICT (scope_id) DO UPDATE SET portable = excluded.portable WHERE s.portable <> excluded.portable;
END
$fn$;
