package systest

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"

	"github.com/google/uuid"

	"synchro/client"
	"synchro/internal/pgtest"
	"synchro/protocol"
)

// connectBody encodes a connect of a device's first generation with the given cursors.
func connectBody(t testing.TB, d *client.Session, cursors map[string]protocol.ScopeCursor) []byte {
	t.Helper()
	generation := int64(1)
	body, err := json.Marshal(map[string]any{"client_id": d.ClientID, "client_generation": generation, "platform": "test", "app_version": "1.0.0", "protocol_version": 3,
		"schema": d.Manifest().Ref(), "scope_set_version": 1, "known_scopes": cursors})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// stored is what is there of the registry and of rebuilds.
const stored = `SELECT format('%s generations, %s rules, %s dependencies, %s declared scopes, %s copies, %s stages', (SELECT count(*) FROM synchro.registry_generation),
  (SELECT count(*) FROM synchro.registration), (SELECT count(*) FROM synchro.membership_dependency), (SELECT count(*) FROM synchro.declared_scope),
  (SELECT count(*) FROM pg_proc WHERE pronamespace = 'synchro_twin'::regnamespace), (SELECT count(*) FROM synchro.rebuild_stage))`

// memoApp is a second table of the application, with rows of ada, and a third that its rule depends on.
const memoApp = `
CREATE TABLE app.memo (id uuid PRIMARY KEY, owner text NOT NULL);
CREATE TABLE app.away (id text PRIMARY KEY);
INSERT INTO app.memo SELECT md5(i::text)::uuid, 'ada' FROM generate_series(1, 3) i;
GRANT SELECT ON app.memo, app.away TO synchro_owner, synchro_worker;
SELECT synchro.synchro_prepare_projection_view('app.memo', 'memo', '{id,owner}'), synchro.synchro_prepare_projection_view('app.away', 'away', '{id}');
CREATE FUNCTION app.memo_scopes(p_row_key uuid) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
BEGIN ATOMIC SELECT 'user:' || m.owner FROM synchro_projection.memo m WHERE m.id = p_row_key AND NOT EXISTS (SELECT FROM synchro_projection.away a WHERE a.id = m.owner); END;
DO $do$ BEGIN EXECUTE format($sql$CREATE FUNCTION app.away_impact(p_old jsonb, p_new jsonb) RETURNS SETOF synchro.synchro_row_ref LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
BEGIN ATOMIC SELECT %L::text, 'string'::text, m.id::text FROM synchro_projection.memo m WHERE m.owner = p_old->>'id' OR m.owner = p_new->>'id'; END$sql$, synchro.synchro_table_id('app.memo')); END $do$;
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA app FROM PUBLIC;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA app TO synchro_worker;
SELECT synchro.synchro_register_table('app.memo', 'app.memo_scopes', p_push_policy => 'read_only'), synchro.synchro_register_capture_dependency('app.away', '{id}', '{id}'),
  synchro.synchro_register_membership_dependency('app.away', 'app.memo', 'app.away_impact', '{id}');`

// Rules are replaced again and again, some for the worse, and manifests follow each other. What is stored of them stays the same, and clients that come with
// cursors and manifests of before all that are told exactly what they have to do.
func TestPriorGenerationsGo(t *testing.T) {
	t.Parallel()
	a := startApp(t, pgtest.Config{})
	a.insertNotes("ada", 1, 10)
	a.insertNotes("bob", 101, 5)
	a.materialized()
	ada, bob := a.synced("ada", "ada-1"), a.synced("bob", "bob-1")
	adas, bobs := a.rebuildCursor(ada), a.rebuildCursor(bob)
	attempt := uuid.NewString()
	page := a.post("ada", "rebuild", rebuildBody(t, ada, "user:ada", attempt, nil, 3)).page(t)
	others := a.post("bob", "rebuild", rebuildBody(t, bob, "user:bob", attempt, nil, 3)).page(t)

	newest := func() {
		t.Helper()
		pgtest.Poll(t, settle, "activation", func() bool {
			return a.value(`SELECT p.registry_generation = synchro._newest_generation() AND NOT EXISTS (SELECT FROM synchro.backfill WHERE state <> 'rejected') FROM synchro.progress p`) == "true"
		})
	}
	rule := func(body string) string {
		return `CREATE OR REPLACE FUNCTION app.note_scopes(p_row_key uuid) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
BEGIN ATOMIC SELECT ` + body + ` FROM synchro_projection.note n WHERE n.id = p_row_key; END;
SELECT synchro.synchro_register_table('app.note', 'app.note_scopes', p_deleted_at_col => 'deleted_at')`
	}
	round := func(n int) {
		t.Helper()
		for _, body := range []string{fmt.Sprintf("'user:' || CASE n.owner WHEN 'ada' THEN 'eve%d' ELSE n.owner END", n),
			"repeat('x', 300)", // never in force
			"'user:' || n.owner"} {
			a.exec("BEGIN;" + rule(body) + "; COMMIT")
			a.exec("UPDATE app.note SET n = n + 1 WHERE owner = 'ada'") // under the rule in force, whose function is another one
			newest()
		}
		for a.value("SELECT synchro.synchro_compact() ->> 'deleted_other'") != "0" {
		}
	}
	round(0)
	a.exec("BEGIN;" + memoApp + "COMMIT") // Class 3, of ada's scope
	newest()
	round(1)
	want := "1 generations, 3 rules, 1 dependencies, 0 declared scopes, 3 copies, 0 stages"
	a.want(stored, want)
	a.exec("ALTER TABLE app.note ADD label text")
	a.exec("BEGIN;" + rule("'user:' || n.owner") + "; COMMIT") // Class 2
	for n := range 2 {
		round(n + 2)
		a.want(stored, want)
	}
	a.want("SELECT count(*) FROM synchro.quarantine", "0")
	a.want("SELECT membership_generation > 5 FROM synchro.scope WHERE scope_id = 'user:ada'", "true")
	a.want("SELECT membership_generation FROM synchro.scope WHERE scope_id = 'user:bob'", "1")
	a.insertNotes("bob", 106, 2)
	a.materialized()

	var answer struct {
		Schema         struct{ Action string }
		AffectedScopes []string           `json:"affected_scopes"`
		Cursors        map[string]*string `json:"scope_cursor_updates"`
		Generation     int64              `json:"client_generation"`
	}
	connect := func(user string, d *client.Session, cursors map[string]protocol.ScopeCursor) {
		t.Helper()
		r := a.post(user, "connect", connectBody(t, d, cursors))
		answer.AffectedScopes, answer.Cursors = nil, nil
		if err := json.Unmarshal([]byte(r.body), &answer); err != nil || r.status != 200 || answer.Generation != 1 {
			t.Fatalf("connect: %d %s %v", r.status, r.body, err)
		}
	}
	for _, stale := range []struct {
		user string
		body []byte
	}{{"ada", pullBody(t, ada, 100, adas)}, {"bob", rebuildBody(t, bob, "user:bob", attempt, others.Cursor, 3)}} {
		if r := a.post(stale.user, map[string]string{"ada": "pull", "bob": "rebuild"}[stale.user], stale.body); r.status != 422 || r.code() != "schema_mismatch" {
			t.Errorf("%s with an old manifest: %d %s", stale.user, r.status, r.body)
		}
	}
	connect("ada", ada, adas)
	if answer.Schema.Action != "rebuild_local" || fmt.Sprint(answer.AffectedScopes) != "[user:ada]" || len(answer.Cursors) != 1 || answer.Cursors["user:ada"] != nil {
		t.Errorf("ada: %+v", answer)
	}
	connect("bob", bob, bobs)
	moved := answer.Cursors["user:bob"]
	if answer.Schema.Action != "replace" || len(answer.Cursors) != 1 || moved == nil {
		t.Fatalf("bob: %+v", answer)
	}
	a.wantRows(ada, "user:ada", 13)
	a.wantRows(bob, "user:bob", 7)
	// The cursor goes on where it was; one of the old manifest, or of another membership, is stale and no forgery.
	var pulled struct {
		Rebuild []string
		Changes []json.RawMessage
	}
	for _, c := range []struct {
		user    string
		d       *client.Session
		cursors map[string]protocol.ScopeCursor
		rebuild string
		changes int
	}{
		{"bob", bob, map[string]protocol.ScopeCursor{"user:bob": {Cursor: moved}}, "[]", 2},
		{"bob", bob, bobs, "[user:bob]", 0},
		{"ada", ada, adas, "[user:ada]", 0},
	} {
		r := a.post(c.user, "pull", pullBody(t, c.d, 100, maps.Clone(c.cursors)))
		if err := json.Unmarshal([]byte(r.body), &pulled); err != nil || r.status != 200 || fmt.Sprint(pulled.Rebuild) != c.rebuild || len(pulled.Changes) != c.changes {
			t.Errorf("pull of %s: %d %s %v", c.user, r.status, r.body, err)
		}
	}
	// A page of a rebuild of before: its stage is gone, and it is told to begin again.
	if r := a.post("ada", "rebuild", rebuildBody(t, ada, "user:ada", attempt, page.Cursor, 3)); r.status != 409 || r.code() != "rebuild_restart_required" {
		t.Errorf("an old rebuild: %d %s", r.status, r.body)
	}
}
