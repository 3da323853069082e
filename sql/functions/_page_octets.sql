CREATE FUNCTION synchro._page_octets() RETURNS bigint LANGUAGE c IMMUTABLE AS 'MODULE_PATHNAME', 'synchro_page_octets';
COMMENT ON FUNCTION synchro._page_octets() IS
  'row content that a page holds at most, unless a single row is larger: far below what a server can assemble and a client takes';
