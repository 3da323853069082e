package systest

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"synchro/internal/pgtest"
)

// ask calls an endpoint function as the shim does and returns status and exact body.
func ask(t *testing.T, c *pgtest.Cluster, kind, user string, request map[string]any) (int, string) {
	t.Helper()
	text, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	db, err := c.Conn(ctx, "", "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close(ctx) }()
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead}
	if kind == "connect" {
		options.IsoLevel = pgx.ReadCommitted
	}
	var status int
	var body string
	err = pgx.BeginTxFunc(ctx, db, options, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, fmt.Sprintf("SELECT status, body FROM synchro.synchro_%s($1, $2)", kind), user, string(text)).Scan(&status, &body)
	})
	if err != nil {
		t.Fatal(err)
	}
	return status, body
}

func TestRebuildPagesSurviveAnImmediateRestart(t *testing.T) {
	t.Parallel()
	a := startApp(t, pgtest.Config{})
	a.exec("INSERT INTO app.note (id, owner, body) SELECT gen_random_uuid(), 'ann', 'note ' || n FROM generate_series(1, 5) n")
	status, body := ask(t, a.Cluster, "connect", "ann", map[string]any{
		"client_id": "ann-1", "platform": "test", "app_version": "1.0.0", "protocol_version": 3, "scope_set_version": 0,
		"schema": map[string]any{"version": 0, "hash": ""}, "known_scopes": map[string]any{},
	})
	var connected struct {
		Schema struct {
			Version int64
			Hash    string
		}
	}
	if err := json.Unmarshal([]byte(body), &connected); err != nil || status != 200 {
		t.Fatal(status, body, err)
	}
	pgtest.Poll(t, settle, "five rows", func() bool {
		var n int
		err := a.db.QueryRow(context.Background(), "SELECT count(*) FROM synchro.scope_entry").Scan(&n)
		return err == nil && n == 5
	})

	request := map[string]any{"client_id": "ann-1", "client_generation": 1, "schema": map[string]any{"version": connected.Schema.Version, "hash": connected.Schema.Hash},
		"scope": "user:ann", "rebuild_id": "0e000000-0000-4000-8000-000000000001", "limit": 2}
	// pages reads all pages, which the tokens chain together.
	pages := func() (all []string) {
		var cursor any
		for {
			request["cursor"] = cursor
			status, body := ask(t, a.Cluster, "rebuild", "ann", request)
			if status != 200 {
				t.Fatal(status, body)
			}
			all = append(all, body)
			var page struct{ Cursor *string }
			if err := json.Unmarshal([]byte(body), &page); err != nil {
				t.Fatal(err)
			}
			if page.Cursor == nil {
				return all
			}
			cursor = *page.Cursor
		}
	}
	before := pages()
	if err := a.Restart(t.Context(), pgtest.Immediate); err != nil {
		t.Fatal(err)
	}
	after := pages()
	if len(before) != 3 || fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("%d pages before, %d after the restart, or they differ", len(before), len(after))
	}

	// The final cursor goes on where the rebuild ended, though nothing was written since, and after a compaction too.
	var last struct {
		Cursor string `json:"final_scope_cursor"`
	}
	if err := json.Unmarshal([]byte(before[2]), &last); err != nil {
		t.Fatal(err)
	}
	pull := map[string]any{"client_id": "ann-1", "client_generation": 1, "schema": request["schema"], "scope_set_version": 1, "limit": 10,
		"scopes": map[string]any{"user:ann": map[string]any{"cursor": last.Cursor}}}
	for range 2 {
		var page struct {
			Changes, Rebuild []any
			HasMore          bool `json:"has_more"`
		}
		pgtest.Poll(t, settle, "a page", func() bool {
			status, body = ask(t, a.Cluster, "pull", "ann", pull)
			return status != 503
		})
		if err := json.Unmarshal([]byte(body), &page); err != nil || status != 200 || len(page.Changes)+len(page.Rebuild) > 0 || page.HasMore {
			t.Errorf("pull: %d %s", status, body)
		}
		mustExec(t, a.Cluster, "SELECT synchro.synchro_compact()")
	}
}
