CREATE FUNCTION synchro._needed_columns(p_registration synchro.registration, p_view_columns name[]) RETURNS name[] LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- The columns that a registration needs to be captured: those that clients get, its life cycle's, those of the relation's view.
SELECT p_registration.key_column || p_registration.sync_columns || coalesce(p_registration.captured_columns, '{}') || coalesce(p_view_columns, '{}')
    || array_remove(ARRAY[p_registration.created_at_column, p_registration.updated_at_column, p_registration.deleted_at_column], NULL)
$fn$;
