package model

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// edit replaces a piece of a function of the extension.
type edit struct{ function, old, new string }

// fault is one that a server could have. Faults that leave wrong state behind get a server of their own.
type fault struct {
	name  string
	edits []edit
	sql   string // instead of edits
	dirty bool
	focus string // what is done more often to find it
}

var faults = []fault{
	{name: "a repeated batch is executed again", edits: []edit{
		{"synchro_push", "ON CONFLICT DO NOTHING", "ON CONFLICT (client_no, batch_id) DO UPDATE SET fingerprint = excluded.fingerprint"},
		{"_push_stored", "RETURN v_stored;", "RETURN '{}';"},
		{"_push_execute", "FROM outcome o\n", "FROM outcome o ON CONFLICT (client_no, mutation_id) DO UPDATE SET outcome = excluded.outcome, accepted = excluded.accepted\n"},
	}},
	{name: "a repeated mutation is executed again", edits: []edit{
		{"_push_stored", "RETURN v_stored;", "RETURN '{}';"},
		{"_push_execute", "FROM outcome o\n", "FROM outcome o ON CONFLICT (client_no, mutation_id) DO UPDATE SET outcome = excluded.outcome, accepted = excluded.accepted\n"},
	}},
	{name: "a batch is recorded and not executed", edits: []edit{
		{"_push_execute", "p_request,\n                                    v_rel_nos)", "p_request,\n                                    array_fill(NULL::int, ARRAY[cardinality(v_rel_nos)]))"},
	}},
	{name: "an atomic group is executed one by one", edits: []edit{{"_push_execute", "p_schema_version, p_atomic, p_request", "p_schema_version, false, p_request"}}},
	{name: "compare-and-swap is skipped", dirty: true, sql: overlooked},
	{name: "a cursor is one event too far", edits: []edit{{"_pull", "THEN c.event ELSE 9223372036854775807",
		"THEN CASE WHEN c.event < 1000000 THEN c.event + 1 ELSE c.event END ELSE 9223372036854775807"}}},
	{name: "a full page says that it is the last", edits: []edit{{"_pull", "v_delta := ", "v_page.o_more := false; v_delta := "}}},
	{name: "the digest is one of older rows", edits: []edit{{"_checksums", "k.high_lsn = c.high_lsn", "true"}}},
	{name: "the digest that is stored is one of older rows", dirty: true, sql: `CREATE FUNCTION synchro._old_digest() RETURNS trigger LANGUAGE plpgsql AS $fn$
		BEGIN NEW.digest := OLD.digest; RETURN NEW; END $fn$;
		CREATE TRIGGER old_digest BEFORE UPDATE ON synchro.scope_digest_cache FOR EACH ROW EXECUTE FUNCTION synchro._old_digest()`},
	{name: "what left a scope is not told", edits: []edit{{"_pull", "v_delta := ", `v_page.o_changes := coalesce((SELECT string_agg(c::text, ',')
		FROM json_array_elements(('[' || v_page.o_changes || ']')::json) c WHERE c ->> 'op' <> 'delete' OR c -> 'row' IS NOT NULL), ''); v_delta := `}}},
	{name: "own writes are not awaited", edits: []edit{{"_check_capture", "ELSIF p_client.accepted_write_epoch >", "ELSIF false AND p_client.accepted_write_epoch >"}}},
	{name: "a rebuild ends with a cursor of now", edits: []edit{
		{"_open_rebuild", "coalesce(g.boundary_lsn >= v_scope.high_lsn, true)", "true"},
		{"_rebuild_page", "_cursor_sign(v_stage.boundary_lsn,", "_cursor_sign((SELECT p.commit_lsn FROM synchro.progress p),"},
	}},
	{name: "a rebuild goes on after an own write", focus: "overtake", edits: []edit{{"_rebuild", "AND v_session.write_epoch = v_client.accepted_write_epoch", ""}}},
	{name: "a revocation has no effect", edits: []edit{{"_reconcile_assignment", "AND NOT u.granted", "AND false"}}},
	{name: "the scope set changes under the same version", edits: []edit{{"_reconcile_assignment", "synchro._next(o_scope_set_version)", "o_scope_set_version"}}},
	{name: "an expired generation is served", edits: []edit{{"_check_gates", "OR p_client.expired", ""}}},
	{name: "what is issued counts as acknowledged", focus: "lapse", edits: []edit{
		{"_pull", "IF v_cursors.o_newer THEN", "IF true THEN"}, {"_pull", "PERFORM synchro._acknowledge(v_client, v_page.o_valid)",
			"UPDATE synchro.client_scope s SET ack_kind = 'transaction_end', ack_lsn = v_progress.commit_lsn, ack_event = NULL, ack_effect = NULL WHERE s.client_no = v_client.client_no AND s.assigned"}}},
	{name: "compaction waits for the fastest client", focus: "lapse relapse", edits: []edit{
		{"_compact_scopes", "ORDER BY k.rank, k.lsn, k.event, k.effect LIMIT 1", "ORDER BY k.rank, k.lsn DESC, k.event DESC, k.effect DESC LIMIT 1"}}},
	{name: "compaction leaves the resume floor", focus: "relapse", edits: []edit{{"_compact_scopes", "WHERE c.scope_no = v.scope_no AND (v.lsn", "WHERE false AND c.scope_no = v.scope_no AND (v.lsn"}}},
	{name: "compaction does not wait for rebuilds", focus: "outlast", edits: []edit{{"_compact_scopes", "AND NOT r.completed", "AND false"}}},
	{name: "a cursor of an affected scope is signed anew", focus: "alter", edits: []edit{
		{"_cursor_updates", "AND c.presented_scope <> ALL (p_affected)", ""}, {"_cursor_updates", "AND coalesce(s.affected_version, 0) <= l.schema_version", ""},
		{"_cursor_updates", "AND c.membership_generation = coalesce(s.membership_generation, 1)", ""},
		{"_cursor_updates", "c.client_generation, c.scope_id, p_schema_hash, c.membership_generation", "c.client_generation, c.scope_id, p_schema_hash, coalesce(s.membership_generation, 1)"}}},
	{name: "a cursor of an unaffected scope is voided", focus: "alter", edits: []edit{{"_cursor_updates", "CASE WHEN NOT l.incompatible", "CASE WHEN false"}}},
	{name: "a cursor is signed anew at the end", focus: "alter", edits: []edit{{"_cursor_updates", "synchro._cursor_sign(c.lsn, c.event, c.effect,", "synchro._cursor_sign(p_progress.commit_lsn, 9223372036854775807, 2147483647,"}}},
	{name: "the affected scopes miss one", focus: "alter", edits: []edit{{"_schema_action", "o_action := CASE WHEN o_affected", "o_affected := o_affected[2:]; o_action := CASE WHEN o_affected"}}},
	{name: "a step is forgotten that no client can follow", focus: "alter", edits: []edit{{"_schema_lineage", "l.incompatible OR l.transition_class = 'class_4'", "l.incompatible"}}},
	{name: "an unknown schema is taken for an old one", focus: "stranger", edits: []edit{{"_schema_action", "ELSIF v_step.schema_version IS NULL THEN", "ELSIF false THEN"}}},
	{name: "an old schema is served", focus: "alter", edits: []edit{{"_check_gates", "v_received.version <> v_current.schema_version OR", "false AND"}}},
	{name: "a replay meets the gates", focus: "alter resend", edits: []edit{{"synchro_push", "synchro._push_body(v_client.client_no, v_request.batch_id), NULL::bigint[];\n    RETURN;",
		"synchro._push_body((synchro._check_gates(v_client, v_request.client_generation, v_request.schema::json) IS NOT NULL)::int * v_client.client_no, v_request.batch_id), NULL::bigint[];\n    RETURN;"}}},
	{name: "the schema that a mutation was authored under is not looked at", focus: "alter", edits: []edit{{"_push_verdict", "IF v_verdict.incompatible IS NOT NULL THEN", "IF false THEN"}}},
	{name: "incompatible fields are told in any order", focus: "alter", edits: []edit{{"_push_verdict", "ORDER BY f.id COLLATE \"C\"", "ORDER BY f.id COLLATE \"C\" DESC"}}},
	{name: "a changed rule leaves the cursors of its scopes", focus: "alter", dirty: true, sql: `CREATE FUNCTION synchro._keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.membership_generation := OLD.membership_generation; RETURN NEW; END $$;
		CREATE TRIGGER keep BEFORE UPDATE ON synchro.scope FOR EACH ROW EXECUTE FUNCTION synchro._keep()`},
	{name: "an operator's expiry has no effect", focus: "expire", edits: []edit{{"synchro_expire_client", "SET expired = true", "SET expired = false"}}},
	{name: "a waiting pull is not woken", focus: "wait", edits: []edit{{"_pull_answer", "wait_on := v_page.o_wait_on;", "wait_on := CASE WHEN v_page.o_wait_on IS NOT NULL THEN '{9000000000}'::bigint[] END;"}}},
	{name: "a waiting pull is not told of the capture of its push", focus: "wait", edits: []edit{{"_push_wait", "ARRAY[-c.client_no]", "ARRAY[-c.client_no - 1000000]"}}},
	{name: "a pull that says nothing is not held", focus: "wait", edits: []edit{{"_pull_answer", "wait_on := v_page.o_wait_on;", ""}}},
	{name: "a rotated key is not believed any more", focus: "rotate", edits: []edit{{"synchro_rotate_keys", "'verify_only'", "'retired'"}}},
	{name: "a membership is dropped", dirty: true, sql: evaluation("SELECT m.ord, m.scope_id FROM synchro._evaluate(p_rel_no, p_generation, p_keys) m WHERE left(m.scope_id, 5) <> 'team:' OR left(p_keys[m.ord], 8) NOT IN ('00000002', '00000005')")},
	{name: "leaving a scope is dropped", dirty: true, sql: evaluation(`SELECT m.ord, m.scope_id FROM synchro._evaluate(p_rel_no, p_generation, p_keys) m
		UNION SELECT k.n::int, s.scope_id FROM unnest(p_keys) WITH ORDINALITY k (key, n) JOIN synchro.scope_entry e ON e.rel_no = p_rel_no AND e.state <> 'x'
		  AND synchro._key_text(CASE WHEN k.key LIKE '%-%' THEN 'string' ELSE 'int64' END, e.key) = k.key JOIN synchro.scope s USING (scope_no)`)},
}

// overlooked makes updates and deletes of what is there, whichever version they were written against: what conflicts is tried once more
// with the version that it conflicts with. _apply is what executes pushes.
const overlooked = `CREATE FUNCTION synchro._apply(bigint, text, jsonb, bigint, boolean, text, int[])
	RETURNS TABLE (ord int, code text, message text, server_version text, server_row text, row_digest bytea) LANGUAGE c AS '$libdir/synchro', 'synchro_push_apply';
	GRANT EXECUTE ON FUNCTION synchro._apply TO synchro_owner;
	CREATE OR REPLACE FUNCTION synchro._push_apply(p_client_no bigint, p_user_id text, p_claims jsonb, p_schema_version bigint, p_atomic boolean, p_request text, p_rel_nos int[])
	RETURNS TABLE (ord int, code text, message text, server_version text, server_row text, row_digest bytea) LANGUAGE plpgsql AS $fn$
	DECLARE
	  v_request jsonb := p_request;
	  v_found   jsonb;
	BEGIN
	  BEGIN
	    SELECT jsonb_object_agg(a.ord - 1, a.server_version) FILTER (WHERE a.code = 'version_conflict') INTO v_found
	      FROM synchro._apply(p_client_no, p_user_id, p_claims, p_schema_version, p_atomic, p_request, p_rel_nos) a;
	    RAISE SQLSTATE 'UNDO1';
	  EXCEPTION WHEN SQLSTATE 'UNDO1' THEN
	    SELECT jsonb_set(v_request, '{mutations}', jsonb_agg(m.value || CASE WHEN v_found ? (m.n - 1)::text
	                     THEN jsonb_build_object('base_version', v_found -> (m.n - 1)::text) ELSE '{}' END ORDER BY m.n)) INTO v_request
	      FROM jsonb_array_elements(v_request -> 'mutations') WITH ORDINALITY m (value, n);
	  END;
	  RETURN QUERY SELECT * FROM synchro._apply(p_client_no, p_user_id, p_claims, p_schema_version, p_atomic, v_request::text, p_rel_nos);
	END $fn$`

const longWay = `CREATE OR REPLACE FUNCTION synchro.synchro_pull(p_user_id text, p_request text, p_claims jsonb DEFAULT NULL, OUT status int, OUT body text, OUT wait_on bigint[])
	LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, synchro, pg_temp AS 'SELECT a.status, a.body, a.wait_on FROM synchro._pull_answer(p_user_id, p_request) a'`

// evaluation replaces what the worker asks for the scopes of rows; _evaluate is what it was.
func evaluation(query string) string {
	return `CREATE FUNCTION synchro._evaluate(int, bigint, text[]) RETURNS TABLE (ord int, scope_id text) LANGUAGE c STRICT
		AS '$libdir/synchro', 'synchro_evaluate_membership';
	GRANT EXECUTE ON FUNCTION synchro._evaluate TO synchro_worker;
	CREATE OR REPLACE FUNCTION synchro._evaluate_membership(p_rel_no int, p_generation bigint, p_keys text[]) RETURNS TABLE (ord int, scope_id text)
		LANGUAGE sql VOLATILE STRICT SET search_path = pg_catalog, synchro AS $fn$ ` + query + " ORDER BY 1 $fn$"
}

// The model finds every fault that is built in.
func TestFaultsAreFound(t *testing.T) {
	shared := startStack(t)
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			s := shared
			if f.dirty {
				s = startStack(t)
			}
			undo, err := f.install(s)
			if err != nil {
				t.Fatal(err)
			}
			found := hunt(25, calm(s, f.focus))
			if err := undo(); err != nil {
				t.Fatal(err)
			}
			if found.reason == "" {
				t.Fatalf("not found in %d steps", found.steps)
			}
			t.Logf("found after %d steps: %.300s", found.steps, found.reason)
		})
	}
	t.Run("none without one", func(t *testing.T) {
		if found := hunt(3, calm(shared, "alter wait")); found.reason != "" {
			t.Errorf("after %d steps: %s", found.steps, found.reason)
		}
	})
}

// calm is a run in which no process ends.
func calm(s *stack, focus string) func(*rapid.T, *finding) {
	return func(rt *rapid.T, f *finding) {
		w := newWorld(rt, s)
		w.calm, w.focus = true, focus
		defer func() { f.steps, f.reason = f.steps+w.steps, w.reason }()
		w.play()
	}
}

// install builds the fault in; the function returned takes it out.
func (f *fault) install(s *stack) (undo func() error, err error) {
	var before []string
	undo = func() error {
		for _, definition := range before {
			if err := s.exec(definition); err != nil {
				return err
			}
		}
		return nil
	}
	if f.sql != "" {
		return undo, s.exec(f.sql)
	}
	// Nearly all pulls are answered in C (extension/pull.c), where nothing can be edited: here all take the long way.
	edits := append([]edit{{"synchro_pull", "", ""}}, f.edits...)
	for _, e := range edits {
		var definition string
		err := s.db.QueryRow(context.Background(), "SELECT pg_get_functiondef(p.oid) FROM pg_proc p WHERE p.pronamespace = 'synchro'::regnamespace AND p.proname = $1",
			e.function).Scan(&definition)
		if err != nil {
			return undo, err
		}
		if !strings.Contains(definition, e.old) {
			return undo, fmt.Errorf("%s has no %q", e.function, e.old)
		}
		before = append([]string{definition}, before...)
		changed := strings.Replace(definition, e.old, e.new, 1)
		if e.function == "synchro_pull" {
			changed = longWay
		}
		if err := s.exec(changed); err != nil {
			return undo, err
		}
	}
	return undo, nil
}
