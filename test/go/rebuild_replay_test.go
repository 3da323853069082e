package systest

import (
	"context"
	"net/http"
	"testing"

	"github.com/google/uuid"

	"synchro/internal/pgtest"
)

// Pages of a rebuild are immutable: whatever happens between two requests, the same request gets the same bytes.
func TestRebuildPagesAreReplayed(t *testing.T) {
	t.Parallel()
	a := startApp(t, pgtest.Config{})
	a.insertNotes("ada", 1, 25)
	a.insertNotes("bob", 101, 25)
	a.materialized()
	ada, bob := a.device("ada", "ada-1"), a.device("bob", "bob-1")
	for _, d := range []interface {
		Connect(context.Context, bool) error
	}{ada, bob} {
		if err := d.Connect(context.Background(), false); err != nil {
			t.Fatal(err)
		}
	}
	id := uuid.NewString()
	var bodies [][]byte
	var answers []string
	var tokens []*string
	var cursor *string
	for more := true; more; {
		body := rebuildBody(t, ada, "user:ada", id, cursor, 10)
		r := a.post("ada", "rebuild", body)
		p := r.page(t)
		bodies, answers, tokens = append(bodies, body), append(answers, r.body), append(tokens, cursor)
		cursor, more = p.Cursor, p.HasMore
		if more != (p.Checksum == nil) || more != (p.FinalCursor == nil) || more != (p.Cursor != nil) {
			t.Errorf("page %d carries the wrong members", len(answers))
		}
	}
	if len(answers) != 3 {
		t.Fatalf("%d pages", len(answers))
	}
	replay := func(when string) {
		t.Helper()
		for i := len(bodies) - 1; i >= 0; i-- {
			var r reply
			pgtest.Poll(t, settle, "answer", func() bool { // a connection that the restart has ended costs one retryable answer
				r = a.post("ada", "rebuild", bodies[i])
				return r.status != http.StatusServiceUnavailable
			})
			if r.status != http.StatusOK || r.body != answers[i] {
				t.Errorf("%s: page %d differs: %d %s", when, i, r.status, r.code())
			}
		}
	}
	replay("at once")
	a.exec("UPDATE app.note SET body = 'changed'; DELETE FROM app.note WHERE id = md5('7')::uuid; INSERT INTO app.note VALUES (gen_random_uuid(), 'ada', 'new')")
	a.materialized()
	replay("after changes")
	a.restartShim()
	replay("after a restart of the shim")
	a.restart(pgtest.Immediate)
	replay("after a restart of the server")

	forged := *tokens[1]
	forged = forged[:len(forged)-1] + string(forged[len(forged)-1]^1)
	for name, c := range map[string]struct {
		user string
		body []byte
	}{
		"another limit":            {"ada", rebuildBody(t, ada, "user:ada", id, tokens[1], 11)},
		"another limit at start":   {"ada", rebuildBody(t, ada, "user:ada", id, nil, 11)},
		"another rebuild":          {"ada", rebuildBody(t, ada, "user:ada", uuid.NewString(), tokens[1], 10)},
		"another scope":            {"ada", rebuildBody(t, ada, "user:bob", id, tokens[1], 10)},
		"a scope of somebody else": {"ada", rebuildBody(t, ada, "user:bob", uuid.NewString(), nil, 10)},
		"another user":             {"bob", rebuildBody(t, bob, "user:bob", id, tokens[1], 10)},
		"a forged token":           {"ada", rebuildBody(t, ada, "user:ada", id, &forged, 10)},
	} {
		if r := a.post(c.user, "rebuild", c.body); r.status != http.StatusBadRequest || r.code() != "invalid_request" {
			t.Errorf("%s: %d %s", name, r.status, r.code())
		}
	}
	// What changed meanwhile comes by pull from the final cursor.
	a.wantRows(ada, "user:ada", 25)
}
