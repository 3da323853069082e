CREATE FUNCTION synchro._install_fence(p_rel_no int) RETURNS void LANGUAGE sql
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Gives a registered relation its triggers, or new ones in their place. Locks: SHARE ROW EXCLUSIVE on the relation and its partitions.
SELECT synchro._install_triggers(l.rel_no, l.relation_oid, l.relation_id, CASE a.kind WHEN 's' THEN l.table_id END, a.kind, r.key_attnum, a.sync_attnums, a.text_attnums, a.required_attnums)
  FROM synchro.relation l CROSS JOIN LATERAL synchro._fence_arguments(l.rel_no) a
 CROSS JOIN LATERAL (SELECT s.key_attnum FROM synchro.standing_registration s WHERE s.rel_no = l.rel_no ORDER BY s.generation DESC LIMIT 1) r
 WHERE l.rel_no = p_rel_no
$fn$;
