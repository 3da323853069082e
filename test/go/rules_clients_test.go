package systest

import (
	"encoding/json"
	"testing"

	"github.com/google/uuid"

	"synchro/internal/pgtest"
)

// movedNotes gives ada's notes to eve.
const movedNotes = `CREATE FUNCTION app.moved_notes(p_row_key uuid) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
BEGIN ATOMIC SELECT 'user:' || CASE n.owner WHEN 'ada' THEN 'eve' ELSE n.owner END FROM synchro_projection.note n WHERE n.id = p_row_key; END;
REVOKE EXECUTE ON FUNCTION app.moved_notes(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION app.moved_notes(uuid) TO synchro_worker`

// Clients see the old rule until the new one is whole, however often the worker is killed meanwhile. Then the affected scopes rebuild, a
// rebuild that had begun begins anew, and the cursors of all others go on.
func TestClientsDuringARuleChange(t *testing.T) {
	a := startApp(t, pgtest.Config{Settings: []string{"synchro.backfill_batch_size = 1"}})
	a.exec(movedNotes)
	a.insertNotes("ada", 1, 1500)
	a.insertNotes("bob", 2001, 20)
	a.materialized()
	ada, bob, eve := a.synced("ada", "ada-1"), a.synced("bob", "bob-1"), a.synced("eve", "eve-1")
	a.wantRows(ada, "user:ada", 1500)
	cursors := a.rebuildCursor(bob)
	id := uuid.NewString()
	begun := a.post("ada", "rebuild", rebuildBody(t, ada, "user:ada", id, nil, 10)).page(t)

	before := a.value("SELECT registry_generation FROM synchro.progress")
	a.exec("SELECT synchro.synchro_register_table('app.note', 'app.moved_notes', p_deleted_at_col => 'deleted_at')")
	staging := func() bool { return a.value("SELECT registry_generation FROM synchro.progress") == before }
	for kills := range 3 {
		pgtest.Poll(t, settle, "staging", func() bool {
			return !staging() || a.value("SELECT coalesce(sum(staged), 0) >= $1 FROM synchro.backfill", 100*(kills+1)) == "true"
		})
		if !staging() {
			t.Fatal("the rule came into force too early to kill anything")
		}
		a.killCore()
		a.exec("UPDATE app.note SET n = n + 1 WHERE owner = 'ada' AND id IN (SELECT id FROM app.note WHERE owner = 'ada' ORDER BY n, id LIMIT 7)")
		a.awaitReady()
	}
	a.insertNotes("ada", 1501, 5)
	a.materialized()
	if staging() {
		a.sync(ada)
		a.sync(eve)
		if staging() { // else the syncs may have met either rule
			if got := []int{ada.Rows("user:ada"), eve.Rows("user:eve")}; got[0] != 1505 || got[1] != 0 {
				t.Errorf("while the rule is staged ada holds %d notes and eve %d", got[0], got[1])
			}
		}
	} else {
		t.Error("the rule came into force too early to see the old one")
	}
	pgtest.Poll(t, 2*settle, "the new rule", func() bool { return !staging() })
	a.wantRows(ada, "user:ada", 0)
	a.wantRows(eve, "user:eve", 1505)
	a.want("SELECT string_agg(scope_id || ' ' || membership_generation, ', ' ORDER BY scope_id) FROM synchro.scope", "user:ada 2, user:bob 1, user:eve 2")

	// A page of the rebuild that had begun.
	if r := a.post("ada", "rebuild", rebuildBody(t, ada, "user:ada", id, begun.Cursor, 10)); r.status != 409 || r.code() != "rebuild_restart_required" {
		t.Errorf("an old rebuild: %d %s", r.status, r.body)
	}
	// A cursor of an unaffected scope, from before.
	a.insertNotes("bob", 2021, 1)
	a.materialized()
	r := a.post("bob", "pull", pullBody(t, bob, 100, cursors))
	var pulled struct {
		Rebuild []string
		Changes []json.RawMessage
	}
	if err := json.Unmarshal([]byte(r.body), &pulled); err != nil || r.status != 200 || len(pulled.Rebuild) != 0 || len(pulled.Changes) != 1 {
		t.Errorf("bob's cursor: %d %s", r.status, r.body)
	}
	a.wantRows(bob, "user:bob", 21)
	a.want("SELECT count(*) FROM synchro.quarantine", "0")
}
