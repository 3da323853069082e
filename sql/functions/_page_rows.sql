CREATE FUNCTION synchro._page_rows(p_entries synchro.scope_entry[], p_schema_version bigint) RETURNS int LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- How many of the entries a page takes: content up to _page_octets(), and at least one. Relations without any value out of line are
-- not looked at: a thousand of their rows are no large page.
DECLARE
  v_relation record;
  v_more     record;
  v_ordinals bigint[] := '{}';
  v_sizes    bigint[] := '{}';
BEGIN
  FOR v_relation IN
    SELECT k.*, (SELECT string_agg(format('synchro._raw_size(r.%I)', a.attname), ' + ') FROM pg_attribute a
                  WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attlen = -1 AND a.attstorage <> 'p') AS size
      FROM synchro.synced_relation k JOIN pg_class c ON c.oid = format('synchro_data.%I', k.projection)::regclass
     WHERE k.schema_version = p_schema_version AND k.rel_no IN (SELECT e.rel_no FROM unnest(p_entries) e) AND pg_relation_size(c.reltoastrelid) > 0
  LOOP
    EXECUTE format($q$
      SELECT coalesce(array_agg(e.ordinality), '{}') AS ordinals, coalesce(array_agg(%1$s), '{}') AS sizes
        FROM unnest($1) WITH ORDINALITY e JOIN synchro_data.%2$I r ON r.%3$I = synchro._key_text(%4$L, e.key)::%5$s
       WHERE e.rel_no = $2 AND e.state <> 'x' $q$,
      v_relation.size, v_relation.projection, v_relation.key_column, v_relation.pk_type, v_relation.key_type)
      INTO v_more USING p_entries, v_relation.rel_no;
    v_ordinals := v_ordinals || v_more.ordinals;
    v_sizes := v_sizes || v_more.sizes;
  END LOOP;
  RETURN (SELECT greatest(coalesce(min(t.n) - 1, cardinality(p_entries)), 1)
            FROM (SELECT u.n, sum(u.size) OVER (ORDER BY u.n) AS octets FROM unnest(v_ordinals, v_sizes) u (n, size)) t
           WHERE t.octets > (SELECT synchro._page_octets()));
END
$fn$;
