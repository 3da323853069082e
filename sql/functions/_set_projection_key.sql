CREATE FUNCTION synchro._set_projection_key(p_rel_no int, p_key_attnum smallint) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Makes the key column the projection's primary key, at the first registration. 55000 when another column was the key.
DECLARE
  v_key smallint;
BEGIN
  SELECT substr(a.attname, 2)::smallint INTO v_key
    FROM pg_constraint k JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1]
   WHERE k.conrelid = format('synchro_data.r_%s', p_rel_no)::regclass AND k.contype = 'p';
  IF v_key IS NULL THEN
    EXECUTE format('ALTER TABLE synchro_data.r_%s ADD PRIMARY KEY (c%s)', p_rel_no, p_key_attnum);
  ELSIF v_key <> p_key_attnum THEN
    RAISE EXCEPTION USING ERRCODE = '0A000', MESSAGE = 'the table was registered with another key before',
      HINT = 'unregister the table, and register it once that is active: it becomes another table for clients';
  END IF;
END
$fn$;
