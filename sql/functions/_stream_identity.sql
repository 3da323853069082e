CREATE FUNCTION synchro._stream_identity(OUT system_identifier bigint, OUT timeline int, OUT database_oid oid)
LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'synchro_stream_identity';
