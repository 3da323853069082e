CREATE FUNCTION synchro._storage_type(p_type oid) RETURNS text LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Type of a projection column: the base type when it lives in pg_catalog, else text. Domains are stripped, of array
-- elements too, so that no CHECK of the application runs in the worker. Without type modifier: a cast to char or
-- bit with one would truncate silently.
DECLARE
  v_type pg_type;
  v_elem pg_type;
BEGIN
  SELECT * INTO v_type FROM pg_type WHERE oid = p_type;
  WHILE v_type.typtype = 'd' LOOP
    SELECT * INTO v_type FROM pg_type WHERE oid = v_type.typbasetype;
  END LOOP;
  IF v_type.typcategory = 'A' AND v_type.typelem <> 0 THEN
    SELECT * INTO v_elem FROM pg_type WHERE oid = v_type.typelem;
    WHILE v_elem.typtype = 'd' LOOP
      SELECT * INTO v_elem FROM pg_type WHERE oid = v_elem.typbasetype;
    END LOOP;
    IF v_elem.typnamespace <> 'pg_catalog'::regnamespace THEN
      RETURN 'pg_catalog._text';
    END IF;
    SELECT * INTO v_type FROM pg_type WHERE oid = v_elem.typarray;
  END IF;
  IF v_type.typnamespace = 'pg_catalog'::regnamespace THEN
    RETURN format('pg_catalog.%I', v_type.typname);
  END IF;
  RETURN 'text';
END
$fn$;
