package systest

import (
	"fmt"
	"slices"
	"testing"

	"synchro/internal/pgtest"
	"synchro/worker"
)

// Rows of every type of key are captured, impacted by others and removed: their texts in fences, functions and projections are one, and
// what a cast to text makes of them is understood.
func TestKeysOfEveryTypeAreImpacted(t *testing.T) {
	t.Parallel()
	c := newCore(t, pgtest.Config{})
	c.exec(`CREATE SCHEMA kt; CREATE TABLE kt.src (id bigint PRIMARY KEY, tbl text, k text, n int, owner text);
		GRANT USAGE ON SCHEMA kt TO synchro_owner, synchro_worker; GRANT SELECT ON kt.src TO synchro_owner, synchro_worker;
		SELECT synchro.synchro_prepare_projection_view('kt.src', 'kt_src', '{id,tbl,k,n,owner}')`)
	types := []struct{ typ, pk, one, two string }{
		{"smallint", "int", "-7", "8"},
		{"integer", "int", "0", "2147483647"},
		{"bigint", "int64", "-9223372036854775808", "9007199254740993"},
		{"text", "string", "", "a b\tc'é"},
		{"varchar(10)", "string", "x ", "y"},
		{"char(5)", "string", "ab   ", "     "},
		{"uuid", "string", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "00000000-0000-0000-0000-000000000000"},
		{"inet", "string", "192.168.0.1", "10.0.0.0/8"},
		{"cidr", "string", "192.168.0.0/24", "2001:db8::/32"},
		{"macaddr", "string", "08:00:2b:01:02:03", "ff:ff:ff:ff:ff:ff"},
		{"macaddr8", "string", "08:00:2b:01:02:03:04:05", "ff:ff:ff:ff:ff:ff:ff:ff"},
		{"int4range", "string", "[1,5)", "empty"},
		{"int8range", "string", "[1,)", "(,5)"},
		{"numrange", "string", "[1.0,2.50]", "(,)"},
		{"int4multirange", "string", "{[1,2),[3,4)}", "{}"},
		{"int8multirange", "string", "{[1,2)}", "{(,)}"},
		{"nummultirange", "string", "{[1.5,2.0]}", "{}"},
	}
	c.exec("BEGIN")
	for i, k := range types {
		c.exec(fmt.Sprintf("CREATE TABLE kt.t%d (k %s PRIMARY KEY, n int)", i, k.typ))
		c.exec(fmt.Sprintf("GRANT SELECT ON kt.t%d TO synchro_owner, synchro_worker", i))
		c.exec(fmt.Sprintf("INSERT INTO kt.t%d VALUES ($1, 1)", i), k.one)
		c.exec(fmt.Sprintf("SELECT synchro.synchro_prepare_projection_view('kt.t%d', 'kt_t%[1]d', '{k,n}')", i))
		argument := c.value("SELECT atttypid::regtype FROM pg_attribute WHERE attrelid = $1::text::regclass AND attname = 'k'", fmt.Sprintf("kt.t%d", i))
		c.exec(fmt.Sprintf(`CREATE FUNCTION kt.m%d(p_row_key %s) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
		BEGIN ATOMIC
		  SELECT 'user:' || s.owner FROM synchro_projection.kt_t%[1]d t JOIN synchro_projection.kt_src s ON s.n = t.n
		   WHERE t.k = p_row_key AND s.tbl = 't%[1]d';
		END`, i, argument))
		c.exec(fmt.Sprintf(`CREATE FUNCTION kt.i%d(p_old_row jsonb, p_new_row jsonb) RETURNS SETOF synchro.synchro_row_ref
		  LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
		BEGIN ATOMIC
		  SELECT '%s'::text, '%s'::text, r->>'k' FROM (VALUES (p_old_row), (p_new_row)) v(r) WHERE r->>'tbl' = 't%[1]d'
		  UNION ALL SELECT '%[2]s', '%[3]s', t.k::text FROM synchro_projection.kt_t%[1]d t WHERE t.n IN ((p_old_row->>'n')::int, (p_new_row->>'n')::int);
		END`, i, c.value(fmt.Sprintf("SELECT synchro.synchro_table_id('kt.t%d')", i)), k.pk))
	}
	c.exec(`DO $$ DECLARE f regprocedure; BEGIN
	  FOR f IN SELECT p.oid FROM pg_proc p WHERE p.pronamespace = 'kt'::regnamespace LOOP
	    EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', f);
	    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO synchro_worker', f);
	  END LOOP;
	END $$`)
	for i := range types {
		c.exec(fmt.Sprintf("SELECT synchro.synchro_register_table('kt.t%d', 'kt.m%[1]d', 'multi_scope', 'k', p_push_policy => 'read_only')", i))
		c.exec(fmt.Sprintf("SELECT synchro.synchro_register_membership_dependency('kt.src', 'kt.t%d', 'kt.i%[1]d', '{tbl,k,n,owner}')", i))
	}
	c.exec("SELECT synchro.synchro_register_capture_dependency('kt.src', '{id}', '{tbl,k,n,owner}')")
	c.exec("COMMIT")
	c.start()
	c.streaming()
	check := func(what string, want string) {
		t.Helper()
		c.materialized()
		for i, k := range types {
			got := c.value(fmt.Sprintf(`SELECT coalesce(string_agg(s.scope_id || ' ' || e.key::text, ', ' ORDER BY s.scope_id, e.key), '') FROM synchro.scope_entry e JOIN synchro.scope s USING (scope_no)
				JOIN synchro.relation l USING (rel_no) WHERE l.physical_relation = 't%d' AND e.state = 'l'`, i))
			need := c.value(fmt.Sprintf(`SELECT coalesce(string_agg('user:' || v.owner || ' ' || synchro._key_bytes('%s', v.k)::text, ', ' ORDER BY v.owner, synchro._key_bytes('%[1]s', v.k)), '')
				FROM (%s) v(owner, k)`, k.pk, want), k.one, k.two)
			if got != need {
				t.Errorf("%s, %s: %s, want %s", k.typ, what, got, need)
			}
		}
	}
	each := func(sql string) {
		for i := range types {
			c.exec(fmt.Sprintf(sql, i))
		}
	}
	for i, k := range types {
		c.exec(fmt.Sprintf("INSERT INTO kt.t%d VALUES ($1, 2)", i), k.two)
		c.exec(fmt.Sprintf("INSERT INTO kt.src VALUES (%[1]d, 't%[1]d', $1, 1, 'a'), (100 + %[1]d, 't%[1]d', $2, 2, 'b')", i), k.one, k.two)
	}
	check("dependencies came", "VALUES ('a', $1), ('b', $2)")
	c.exec("UPDATE kt.src SET owner = owner || 'x'")
	check("dependencies changed", "VALUES ('ax', $1), ('bx', $2)")
	each("UPDATE kt.t%d SET n = n")
	check("rows changed", "VALUES ('ax', $1), ('bx', $2)")
	// Rebuilds and digests find every row by its key.
	c.want("SELECT count(*) FROM synchro.scope_entry WHERE state = 'l'", fmt.Sprint(2*len(types)))
	c.exec("BEGIN")
	c.want(`SELECT sum(n) FROM (SELECT synchro._stage_rows(-1000 * s.scope_no - k.rel_no, 0, s.scope_no, k.rel_no, k.schema_version) AS n
		FROM synchro.scope s, synchro.synced_relation k JOIN synchro.progress p USING (schema_version)) r`, fmt.Sprint(2*len(types)))
	digests := `SELECT string_agg(d.digest, ',' ORDER BY s.scope_id) FROM synchro.scope s, synchro.progress p, synchro._scope_digest(s.scope_no, p.schema_version, s.scope_id) d`
	current := c.value(digests)
	c.exec("UPDATE synchro.scope_entry SET digest_schema = 0 WHERE state = 'l'")
	c.want(digests, current)
	c.exec("ROLLBACK")
	each("DELETE FROM kt.t%d")
	c.materialized()
	c.want("SELECT count(*) FROM synchro.scope_entry WHERE state <> 'x'", "0")
	c.want("SELECT count(*) FROM synchro.quarantine", "0")
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(slices.DeleteFunc(slices.Clone(c.states), func(s worker.State) bool { return s != worker.Connecting })); n != 1 {
		t.Errorf("%d sessions after the bootstrap: %v", n, c.states)
	}
}
