package systest

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"synchro/canonical"
	"synchro/internal/pgtest"
)

// A pushed update locks its row as an update that leaves the key alone: rows that refer to it may come meanwhile, from either side.
func TestPushedUpdateAndRowsThatReferToIt(t *testing.T) {
	t.Parallel()
	a := startApp(t, pgtest.Config{})
	a.exec("CREATE TABLE app.reply (id bigint PRIMARY KEY, note uuid NOT NULL REFERENCES app.note)")
	ada := a.synced("ada", "ada-1")
	id := uuid.NewString()
	push := func(op, base string, columns noteColumns) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), settle)
		defer cancel()
		p, err := ada.Push(ctx, []canonical.Mutation{noteChange(ada, op, id, base, columns)}, false)
		if err != nil || len(p.Accepted) != 1 {
			t.Fatalf("%s: %+v %v", op, p, err)
		}
		return p.Accepted[0].Row.ServerVersion
	}
	version := push("insert", "", noteColumns{"owner": `"ada"`, "body": `"one"`})
	// A child whose transaction is open.
	db := a.Connect(t, "", "")
	begin := func(sql string) error {
		_, err := db.Exec(context.Background(), "SET lock_timeout = '10s'; BEGIN; "+sql)
		return err
	}
	if err := begin("INSERT INTO app.reply VALUES (1, '" + id + "')"); err != nil {
		t.Fatal(err)
	}
	version = push("update", version, noteColumns{"body": `"two"`})
	if _, err := db.Exec(context.Background(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	// A push whose transaction is open: a trigger holds it until the child has come.
	a.exec(`CREATE FUNCTION app.wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NULL; END $$;
		CREATE TRIGGER wait AFTER UPDATE ON app.note FOR EACH ROW EXECUTE FUNCTION app.wait(); SELECT pg_advisory_lock(7)`)
	done := make(chan string, 1)
	go func() {
		p, err := ada.Push(context.Background(), []canonical.Mutation{noteChange(ada, "update", id, version, noteColumns{"body": `"three"`})}, false)
		if err != nil || len(p.Accepted) != 1 {
			done <- "not accepted"
			return
		}
		done <- ""
	}()
	pgtest.Poll(t, settle, "push under way", func() bool {
		return a.value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted") == "1"
	})
	if err := begin("INSERT INTO app.reply VALUES (2, '" + id + "'); COMMIT"); err != nil {
		t.Errorf("a child of a row that a push has updated: %v", err)
	}
	a.exec("SELECT pg_advisory_unlock(7)")
	select {
	case failure := <-done:
		if failure != "" {
			t.Error(failure)
		}
	case <-time.After(settle):
		t.Error("the push does not end")
	}
}
