-- What the worker writes with, in C (extension/apply_*.c): many rows a call, as octets; integers big-endian.

CREATE FUNCTION synchro._store_rows(p_rel_no int, p_schema_version bigint, p_key_attnum smallint, p_deleted_attnum smallint, p_rows bytea)
RETURNS bytea LANGUAGE c VOLATILE STRICT
SET search_path = pg_catalog, synchro, pg_temp
AS 'MODULE_PATHNAME', 'synchro_store_rows';
COMMENT ON FUNCTION synchro._store_rows(int, bigint, smallint, smallint, bytea) IS
  'Stores rows in a projection. p_rows: number of scopes that new rows will probably have u8, columns u16 and their attnums u16, then rows: '
  'n (was not there), a (may be there) or o (is there), version 16 octets, xmin u32, and for each column its length u32, text and an octet 0; '
  'in place of a length ffffffff is null and, in rows of kind o, fffffffe the value so far. Returns for each row bits u8 (1: deleted_at is '
  'not null; 2: new, with a placeholder for its scopes that must be overwritten), key octets with their length u16, digest 32 octets, scopes so far u16 and u64 each, tid u32 u16; nothing when '
  'p_schema_version is 0. Errors: of input functions as they are; 22P02 for a value without portable form, 22023 for a row of kind o '
  'that is not there, 23505 for one of kind n that is.';

CREATE FUNCTION synchro._read_rows(p_rel_no int, p_schema_version bigint, p_key_attnum smallint, p_deleted_attnum smallint, p_keys text[])
RETURNS bytea LANGUAGE c VOLATILE STRICT
SET search_path = pg_catalog, synchro, pg_temp
AS 'MODULE_PATHNAME', 'synchro_read_rows';
COMMENT ON FUNCTION synchro._read_rows(int, bigint, smallint, smallint, text[]) IS
  'Reads rows of a projection by their keys, as fences write them. Returns for each key what _store_rows does, and the row''s version 16 octets; '
  'for one that is not there only bits u8 4. Costs less for keys in ascending order. Errors: 22023 for a key that is not in canonical form.';

CREATE FUNCTION synchro._store_scopes(p_rel_no int, p_rows bytea) RETURNS bigint LANGUAGE c VOLATILE STRICT
SET search_path = pg_catalog, synchro, pg_temp
AS 'MODULE_PATHNAME', 'synchro_store_scopes';
COMMENT ON FUNCTION synchro._store_scopes(int, bytea) IS
  'Records which scopes hold rows of a projection. p_rows: tid u32 u16, scopes u16 and u64 each. A row that this transaction inserted is '
  'overwritten in place if the number of scopes was foreseen. Returns the number of rows.';

CREATE FUNCTION synchro._store_entries(p_schema_version bigint, p_entries bytea, p_new boolean) RETURNS bigint LANGUAGE c VOLATILE STRICT
SET search_path = pg_catalog, synchro, pg_temp
AS 'MODULE_PATHNAME', 'synchro_store_entries';
COMMENT ON FUNCTION synchro._store_entries(bigint, bytea, boolean) IS
  'Writes entries. p_entries: scope u64, commit LSN u64, event ordinal u64, rel_no u32, effect ordinal u32, state u8, key octets with their '
  'length u16, version 16 octets and, unless the state is x, digest 32 octets. p_new: there are none of these rows yet. Returns the number of '
  'entries. Errors: 23505 for one that is there, 22023 for one of state x that is not.';
