CREATE FUNCTION synchro._drift() RETURNS TABLE ("check" text, rel_no int, reason text, blocks boolean, blind boolean) LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
#variable_conflict use_column
-- What is no longer as the newest registration left it: the one definition for the worker, which blocks, for health and for the DDL guard.
-- Columns are also those of generations before it that rows may still be captured with, unless it is being built.
-- rel_no is NULL for the publication as a whole. blocks: capture cannot go on exactly; the others are for the guard and health alone.
-- blind: rows may change with neither fence nor row event, so that nothing could tell of them afterwards. Without triggers the row events do,
-- and without the publication the fences. TRUNCATE of a single partition is never published.
-- Not named here, because nothing can be lost by it: tables in the publication that are not registered.
BEGIN
  RETURN QUERY
  WITH RECURSIVE r AS MATERIALIZED (
    SELECT g.rel_no, g.key_attnum, l.relation_oid AS oid, l.physical_schema, l.physical_relation, g.membership_function,
           ARRAY(SELECT DISTINCT c FROM synchro.registration s CROSS JOIN LATERAL unnest(synchro._needed_columns(s, l.view_columns)) c
                  WHERE s.rel_no = g.rel_no AND s.generation BETWEEN CASE WHEN n.schema_version IS NULL THEN n.generation ELSE synchro._capturing_generation() END AND n.generation
                    AND NOT EXISTS (SELECT FROM synchro.backfill b WHERE b.generation = s.generation AND b.state = 'rejected')) AS columns
      FROM synchro.registry_generation n JOIN synchro.registration g ON g.generation = n.generation JOIN synchro.relation l ON l.rel_no = g.rel_no
     WHERE n.generation = synchro._newest_generation()
  ), here AS MATERIALIZED (
    SELECT r.*, c.relname, c.relnamespace, c.relkind FROM r JOIN pg_class c ON c.oid = r.oid
  ), part AS (   -- the relation itself, and its partitions; pg_partition_tree() would not see what this snapshot sees
    SELECT h.rel_no, h.oid AS root, h.oid AS oid, h.relkind FROM here h
    UNION ALL
    SELECT p.rel_no, p.root, c.oid, c.relkind FROM part p JOIN pg_inherits i ON i.inhparent = p.oid JOIN pg_class c ON c.oid = i.inhrelid
     WHERE p.relkind = 'p' AND NOT i.inhdetachpending
  ), pub AS (
    SELECT b.oid FROM pg_publication b
     WHERE b.pubname = current_setting('synchro.publication_name')
       AND NOT b.puballtables AND b.pubinsert AND b.pubupdate AND b.pubdelete AND b.pubtruncate AND b.pubviaroot
       AND NOT EXISTS (SELECT FROM pg_publication_namespace n WHERE n.pnpubid = b.oid)
  ), unpublished AS MATERIALIZED (
    SELECT h.rel_no FROM here h
     WHERE NOT EXISTS (SELECT FROM pg_publication_rel x JOIN pg_publication b ON b.oid = x.prpubid
                        WHERE b.pubname = current_setting('synchro.publication_name') AND x.prrelid = h.oid
                          AND x.prqual IS NULL AND x.prattrs IS NULL)
  )
  SELECT 'relations', r.rel_no, 'dropped', true, false FROM r WHERE NOT EXISTS (SELECT FROM here h WHERE h.rel_no = r.rel_no)
  UNION ALL
  SELECT 'relations', h.rel_no, 'renamed', true, false FROM here h JOIN pg_namespace n ON n.oid = h.relnamespace
   WHERE h.relname <> h.physical_relation OR n.nspname <> h.physical_schema
  UNION ALL
  SELECT DISTINCT 'relations', p.rel_no, 'unlogged', true, false FROM part p JOIN pg_class c ON c.oid = p.oid WHERE c.relpersistence <> 'p'
  UNION ALL
  SELECT DISTINCT 'relations', p.rel_no, 'access_method', true, false FROM part p JOIN pg_class c ON c.oid = p.oid
   WHERE c.relkind = 'r' AND c.relam <> (SELECT a.oid FROM pg_am a WHERE a.amname = 'heap')
  UNION ALL
  SELECT DISTINCT 'relations', p.rel_no, 'replica_identity', true, false FROM part p JOIN pg_class c ON c.oid = p.oid WHERE c.relreplident <> 'd'
  UNION ALL
  SELECT 'key', h.rel_no, 'changed', true, false FROM here h
   WHERE NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conrelid = h.oid AND k.contype = 'p' AND NOT k.condeferrable
                        AND k.conkey = ARRAY[h.key_attnum])
  UNION ALL
  SELECT DISTINCT 'columns', h.rel_no, 'changed', true, false FROM here h CROSS JOIN LATERAL unnest(h.columns) w(name)
   WHERE NOT EXISTS (SELECT FROM synchro.captured_column c
                       JOIN pg_attribute a ON a.attrelid = h.oid AND a.attnum = c.attnum AND a.attname = c.column_name
                                          AND NOT a.attisdropped AND a.atttypid = c.source_type AND (a.attgenerated = 's') = c.generated
                      WHERE c.rel_no = h.rel_no AND c.column_name = w.name)
  UNION ALL
  SELECT 'triggers', p.rel_no, 'missing_or_disabled', true,
         bool_or(NOT EXISTS (SELECT FROM pub) OR p.rel_no IN (TABLE unpublished) OR (f.name = 'synchro_truncate_guard' AND p.oid <> p.root))
    FROM part p CROSS JOIN (VALUES ('synchro_fence', 29), ('synchro_key_guard', 19), ('synchro_truncate_guard', 34)) f(name, events)
   WHERE p.relkind IN ('r', 'p')
     AND NOT EXISTS (SELECT FROM pg_trigger t JOIN pg_proc y ON y.oid = t.tgfoid
                      WHERE t.tgrelid = p.oid AND t.tgname = f.name AND t.tgenabled = 'A' AND t.tgtype = f.events AND t.tgqual IS NULL
                        AND y.proname = f.name AND y.pronamespace = 'synchro'::regnamespace)
   GROUP BY p.rel_no
  UNION ALL
  SELECT 'publication', NULL::int, 'missing_or_changed', true, false WHERE EXISTS (SELECT FROM r) AND NOT EXISTS (SELECT FROM pub)
  UNION ALL
  SELECT 'publication_relations', u.rel_no, 'not_published', true, false FROM unpublished u
  UNION ALL
  SELECT DISTINCT 'privileges', h.rel_no, 'missing', true, false FROM here h CROSS JOIN (VALUES ('synchro_owner'), ('synchro_worker')) o(role)
   WHERE NOT (has_table_privilege(o.role, h.oid, 'SELECT') AND has_schema_privilege(o.role, h.relnamespace, 'USAGE'))
  UNION ALL
  SELECT 'functions', f.rel_no, 'missing', false, false
    FROM (SELECT r.rel_no, r.membership_function AS oid FROM r WHERE r.membership_function IS NOT NULL
          UNION ALL SELECT m.target_rel_no, m.impact_function FROM synchro.membership_dependency m
                     WHERE m.generation IN (synchro._newest_generation(), (SELECT p.registry_generation FROM synchro.progress p))
          UNION ALL SELECT a.rel_no, a.membership_function FROM synchro.active_registration a WHERE a.membership_function IS NOT NULL) f
   WHERE NOT EXISTS (SELECT FROM pg_proc y WHERE y.oid = f.oid)
  UNION ALL
  SELECT 'assignment', NULL, 'missing', false, false FROM synchro.assignment_function f
   WHERE NOT EXISTS (SELECT FROM pg_proc y WHERE y.oid = f.function_oid);
END
$fn$;
