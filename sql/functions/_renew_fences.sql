CREATE FUNCTION synchro._renew_fences(p_rel_nos int[] DEFAULT NULL) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, synchro, pg_temp AS $fn$
-- Renews the triggers that are not as _fence_arguments says any more: those of some relations at the end of a registration, and for the worker (NULL)
-- all, when a generation became active or was rejected.
-- Errors: 55P03 as the caller's lock_timeout says. Locks: SHARE ROW EXCLUSIVE on such relations.
DECLARE
  v_rel record;
BEGIN
  FOR v_rel IN
    SELECT DISTINCT s.rel_no, s.relation_oid
      FROM synchro.standing_registration s
      JOIN pg_trigger t ON t.tgrelid = s.relation_oid AND t.tgname = 'synchro_fence'
      JOIN pg_proc f ON f.oid = t.tgfoid AND f.pronamespace = 'synchro'::regnamespace
     CROSS JOIN LATERAL synchro._fence_arguments(s.rel_no) a
     CROSS JOIN LATERAL string_to_array(encode(t.tgargs, 'escape'), E'\\000') g(given)
     WHERE (p_rel_nos IS NULL OR s.rel_no = ANY (p_rel_nos))
       AND (g.given[2], g.given[7], g.given[8], g.given[9]) IS DISTINCT FROM
           (a.kind::text, array_to_string(a.sync_attnums, ' '), array_to_string(a.text_attnums, ' '), array_to_string(a.required_attnums, ' '))
     ORDER BY s.rel_no
  LOOP
    PERFORM synchro._lock_relation(v_rel.relation_oid); -- behind a registration that is at work on it
    PERFORM synchro._install_fence(v_rel.rel_no);
  END LOOP;
END
$fn$;
