package systest

import (
	"fmt"
	"strings"
	"testing"

	"synchro/internal/pgtest"
)

// Exactly as many impacted rows as the dependency's bound, old and new image together, are evaluated; one more blocks, and nothing of that
// transaction is seen, wherever it comes in it.
func TestBoundOfImpactedRows(t *testing.T) {
	t.Parallel()
	for _, small := range []bool{false, true} {
		t.Run(fmt.Sprintf("pieces=%v", small), func(t *testing.T) {
			t.Parallel()
			c := depsCore(t, pgtest.Config{})
			if small {
				c.smallPieces()
			}
			c.exec(depsRegistration(5))
			c.start()
			c.streaming()
			c.exec(`INSERT INTO lib.folder VALUES (1, 'u1', 't'), (2, 'u2', 't'), (3, 'u3', 't');
				INSERT INTO lib.note SELECT g, 1 + g % 3, 'b' FROM generate_series(1, 15) g`)
			c.asRuled()
			c.exec("UPDATE lib.folder SET owner = owner || 'x'") // three events of five each
			c.asRuled()
			c.exec("INSERT INTO lib.note VALUES (16, 1, 'b')")
			c.asRuled()
			before := c.value("SELECT string_agg(md5(e::text), ',' ORDER BY e::text) FROM synchro.scope_entry e")
			projections := c.value("SELECT string_agg(f::text, ',' ORDER BY f::text) FROM synchro_projection.folder f")
			c.exec("BEGIN; UPDATE lib.folder SET owner = 'y' WHERE id = 2; UPDATE lib.note SET body = 'c'; UPDATE lib.folder SET owner = 'y' WHERE id = 1; COMMIT")
			c.exec("INSERT INTO lib.note VALUES (17, 2, 'b')")
			c.blockedBy("scope_evaluation_failed")
			c.want("SELECT string_agg(md5(e::text), ',' ORDER BY e::text) FROM synchro.scope_entry e", before)
			c.want("SELECT string_agg(f::text, ',' ORDER BY f::text) FROM synchro_projection.folder f", projections)
			c.want("SELECT physical_relation FROM synchro.quarantine q JOIN synchro.relation l USING (rel_no) WHERE q.resolved_at IS NULL", "folder")
		})
	}
}

// Likewise the bound of scopes that hold one row, when it is reached by a change elsewhere.
func TestBoundOfScopesReachedByADependency(t *testing.T) {
	t.Parallel()
	c := depsStreaming(t, pgtest.Config{})
	c.exec(`INSERT INTO lib.folder VALUES (1, 'u1', 't'); INSERT INTO lib.note VALUES (1, 1, 'b');
		INSERT INTO lib.member SELECT g, 1, 'm' || g FROM generate_series(1, 99) g`)
	c.asRuled()
	c.want("SELECT count(*) FROM synchro.scope_entry WHERE state = 'l'", "200")
	c.exec("INSERT INTO lib.member VALUES (100, 1, 'm100')")
	c.blockedBy("scope_evaluation_failed")
	c.want("SELECT count(*) FROM synchro.scope_entry WHERE state = 'l'", "200")
	c.want("SELECT count(*) FROM synchro.scope WHERE scope_id = 'user:m100'", "0")
}

// An impact function that raises an error blocks: it is never taken for one that impacts nothing. Once it is repaired, the same transaction
// goes through.
func TestFailingImpactFunctionBlocks(t *testing.T) {
	t.Parallel()
	c := depsCore(t, pgtest.Config{})
	c.exec(fmt.Sprintf(`CREATE OR REPLACE FUNCTION lib.note_of_folder(p_old_row jsonb, p_new_row jsonb) RETURNS SETOF synchro.synchro_row_ref
		LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
		BEGIN ATOMIC
		  SELECT '%s'::text, 'int64'::text, n.id::text FROM synchro_projection.note n
		   WHERE n.folder IN ((p_old_row->>'id')::bigint, (p_new_row->>'id')::bigint) AND 1 / CASE p_new_row->>'owner' WHEN 'u2' THEN 0 ELSE 1 END = 1;
		END`, c.value("SELECT synchro.synchro_table_id('lib.note')")))
	c.exec(depsRegistration(1000))
	c.start()
	c.streaming()
	c.exec("INSERT INTO lib.folder VALUES (1, 'u1', 't'); INSERT INTO lib.note VALUES (1, 1, 'b')")
	c.asRuled()
	c.exec("UPDATE lib.folder SET owner = 'u2' WHERE id = 1")
	c.exec("UPDATE lib.note SET body = 'later' WHERE id = 1")
	c.blockedBy("scope_evaluation_failed")
	c.want("SELECT string_agg(s.scope_id, ' ' ORDER BY 1) FROM synchro.scope_entry e JOIN synchro.scope s USING (scope_no)", "user:u1 user:u1")
	c.exec("SELECT synchro.synchro_retry_capture()")
	c.poll("second block", "SELECT count(*) FROM synchro.quarantine", "2")
	c.want("SELECT count(DISTINCT commit_lsn) FROM synchro.quarantine", "1")
}

// A rule that gets a dependency later, in a transaction that changes the source too, holds for all rows of the target from its activation on.
func TestALaterDependencyEvaluatesTheWholeTarget(t *testing.T) {
	t.Parallel()
	c := depsCore(t, pgtest.Config{})
	c.limits.BatchMaxRows = 3
	c.exec(`CREATE FUNCTION lib.seat_own(p_row_key bigint) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
		BEGIN ATOMIC SELECT 'own:' || s.owner FROM synchro_projection.seat s WHERE s.id = p_row_key AND s.owner IS NOT NULL; END;
		REVOKE EXECUTE ON FUNCTION lib.seat_own FROM PUBLIC; GRANT EXECUTE ON FUNCTION lib.seat_own TO synchro_worker`)
	self := "SELECT synchro.synchro_register_membership_dependency('lib.seat', 'lib.seat', 'lib.seat_of_seat', '{id,room,owner}', 1000);\n"
	first := strings.Replace(strings.Replace(depsRegistration(1000), self, "", 1), "'lib.seat_scopes'", "'lib.seat_own'", 1)
	c.exec(first)
	c.start()
	c.streaming()
	c.exec(depsRows)
	c.materialized()
	live := "SELECT count(*) FROM synchro.scope_entry e JOIN synchro.scope s USING (scope_no) WHERE e.state = 'l' AND s.scope_id LIKE "
	c.want(live+"'own:%'", "12")
	c.exec("BEGIN; UPDATE lib.seat SET owner = 'newer' WHERE id = 1;" + self + `
		SELECT synchro.synchro_register_table('lib.seat', 'lib.seat_scopes', 'multi_scope', p_push_policy => 'read_only', p_max_scope_fanout => 100); COMMIT`)
	c.poll("activation", "SELECT registry_generation = (SELECT max(generation) FROM synchro.registry_generation) FROM synchro.progress", "true")
	c.asRuled()
	c.want(live+"'own:%'", "0")
	c.want(live+"'room:newer'", "3")
	c.exec("UPDATE lib.seat SET owner = 'last' WHERE id = 2")
	c.asRuled()
	c.want(live+"'room:last'", "3")
}

// A relation that is captured only because rules depend on it is watched as synced ones are: its publication, triggers and drift, and fences
// without a row change, or a TRUNCATE.
func TestCaptureDependenciesAreWatched(t *testing.T) {
	t.Parallel()
	c := depsStreaming(t, pgtest.Config{})
	c.exec(depsRows)
	c.asRuled()
	const states = `SELECT string_agg(h."check" || ' ' || h.state, ', ' ORDER BY h."check") FROM synchro._health_checks() h
		WHERE h."check" IN ('relations', 'triggers', 'publication', 'publication_relations')`
	c.want(states, "publication ok, publication_relations ok, relations ok, triggers ok")
	c.exec("SET synchro.ddl_guard = off; ALTER TABLE lib.member DISABLE TRIGGER synchro_fence")
	c.want(states, "publication ok, publication_relations ok, relations ok, triggers failed")
	c.exec("ALTER TABLE lib.member ENABLE ALWAYS TRIGGER synchro_fence")
	c.exec("ALTER PUBLICATION synchro DROP TABLE lib.member")
	c.want(states, "publication ok, publication_relations failed, relations ok, triggers ok")
	c.exec("ALTER PUBLICATION synchro ADD TABLE lib.member")
	if _, err := c.db.Exec(t.Context(), "TRUNCATE lib.member"); err == nil {
		t.Error("TRUNCATE of a capture dependency is accepted")
	}
	if _, err := c.db.Exec(t.Context(), "UPDATE lib.member SET id = 99 WHERE id = 1"); err == nil {
		t.Error("a change of a capture key is accepted")
	}
	c.exec("UPDATE lib.member SET remark = 'not captured'; DELETE FROM lib.member WHERE id = 3")
	c.asRuled()
	c.exec("ALTER TABLE lib.member DISABLE TRIGGER synchro_fence; UPDATE lib.member SET who = 'nobody' WHERE id = 4; ALTER TABLE lib.member ENABLE ALWAYS TRIGGER synchro_fence")
	c.blockedBy("fence_mismatch")
	c.want("SELECT count(*) FROM synchro.scope WHERE scope_id = 'user:nobody'", "0")
}
