-- What pg_dump takes along (docs/operations.md, "Dumps"): what operators and pushes have said, and of the stream only which one it was.
-- Relations get numbers that none before the dump had: projections of theirs may be in it.
SELECT pg_catalog.pg_extension_config_dump('synchro.progress', '');
SELECT pg_catalog.pg_extension_config_dump('synchro.shared_scope', '');
SELECT pg_catalog.pg_extension_config_dump('synchro.user_scope', '');
SELECT pg_catalog.pg_extension_config_dump('synchro.client', '');
SELECT pg_catalog.pg_extension_config_dump('synchro.client_client_no_seq', '');
SELECT pg_catalog.pg_extension_config_dump('synchro.push_batch', '');
SELECT pg_catalog.pg_extension_config_dump('synchro.push_mutation', '');
SELECT pg_catalog.pg_extension_config_dump('synchro.relation_rel_no_seq', '');
