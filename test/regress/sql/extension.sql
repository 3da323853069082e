-- The extension can be created, dropped and created again.
SELECT extname, nspname FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace WHERE extname = 'synchro';
