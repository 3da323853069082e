package systest

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"synchro/canonical"
	"synchro/internal/pgtest"
)

// What stops a batch half-way leaves nothing of it, says that it may be tried again, and does not keep it from being executed then.
func TestInterruptedPushLeavesNothing(t *testing.T) {
	t.Parallel()
	a := startApp(t, pgtest.Config{Settings: []string{"deadlock_timeout = 20s"}})
	a.exec(counted)
	a.exec("ALTER ROLE synchro_shim SET deadlock_timeout = '10ms'")
	a.restartShim() // its connections learn of it
	ada := a.synced("ada", "ada-1")
	pushed, err := ada.Push(context.Background(), []canonical.Mutation{
		mutation(ada, "insert", noteID(1), "", noteColumns{"owner": `"ada"`, "body": `"one"`}),
		mutation(ada, "insert", noteID(2), "", noteColumns{"owner": `"ada"`, "body": `"two"`}),
	}, false)
	if err != nil || len(pushed.Accepted) != 2 {
		t.Fatalf("push: %+v %v", pushed, err)
	}
	ledger := "SELECT (SELECT count(*) FROM synchro.push_batch) || ' ' || (SELECT count(*) FROM synchro.push_mutation) || ' ' || (SELECT count(*) FROM app.written) || ' ' || (SELECT sum(accepted_write_epoch) FROM synchro.client)"
	before := a.value(ledger)
	body := batch(t, ada,
		noteChange(ada, "update", noteID(1), pushed.Accepted[0].Row.ServerVersion, noteColumns{"body": `"uno"`}),
		noteChange(ada, "insert", noteID(3), "", noteColumns{"owner": `"ada"`, "body": `"three"`}),
		noteChange(ada, "update", noteID(2), pushed.Accepted[1].Row.ServerVersion, noteColumns{"body": `"due"`}))
	interrupted := func(how string, r reply) {
		t.Helper()
		if r.status != http.StatusServiceUnavailable || r.code() != "temporary_unavailable" || r.header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %s", how, r.status, r.code())
		}
		if after := a.value(ledger); after != before {
			t.Errorf("%s: %s before, %s after", how, before, after)
		}
	}
	blocked := "SELECT count(*) FROM pg_stat_activity WHERE usename = 'synchro_shim' AND wait_event_type = 'Lock'"
	waits := func() { pgtest.Poll(t, settle, "a push that waits", func() bool { return a.value(blocked) == "1" }) }
	ctx := context.Background()
	direct := a.Connect(t, "", "")
	do := func(sql string, args ...any) {
		if _, err := direct.Exec(ctx, sql, args...); err != nil {
			t.Error(err)
		}
	}
	// The push holds the first row and is held up at the third; the application holds the second and waits for the first.
	third := a.Connect(t, "", "")
	if _, err := third.Exec(ctx, "BEGIN; INSERT INTO app.note VALUES ('"+noteID(3)+"', 'ada', 'in the way')"); err != nil {
		t.Fatal(err)
	}
	do("BEGIN")
	do("UPDATE app.note SET n = n + 1 WHERE id = $1", noteID(2))
	var wg, wants sync.WaitGroup
	var r reply
	wg.Go(func() { r = a.post("ada", "push", body) })
	waits()
	wants.Go(func() { do("UPDATE app.note SET n = n + 1 WHERE id = $1", noteID(1)) })
	pgtest.Poll(t, settle, "the application that waits for the push", func() bool {
		return a.value("SELECT count(*) FROM pg_stat_activity WHERE usename = 'postgres' AND wait_event_type = 'Lock'") == "1"
	})
	if _, err := third.Exec(ctx, "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	wants.Wait()
	do("ROLLBACK")
	interrupted("deadlock", r)

	for how, sql := range map[string]string{
		"cancelled":  "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE usename = 'synchro_shim' AND wait_event_type = 'Lock'",
		"terminated": "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'synchro_shim' AND wait_event_type = 'Lock'",
	} {
		do("BEGIN")
		do("UPDATE app.note SET n = n + 1 WHERE id = $1", noteID(2))
		wg.Go(func() { r = a.post("ada", "push", body) })
		waits()
		a.exec(sql)
		wg.Wait()
		do("ROLLBACK")
		interrupted(how, r)
	}

	// Errors of the application's code that say "again" or "not now".
	a.exec("CREATE FUNCTION app.raise() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION USING ERRCODE = TG_ARGV[0]; END $$")
	for _, state := range []string{"40001", "40P01", "55P03", "53300", "57014"} {
		a.exec("CREATE TRIGGER raise BEFORE UPDATE ON app.note FOR EACH ROW EXECUTE FUNCTION app.raise('" + state + "')")
		interrupted(state, a.post("ada", "push", body))
		a.exec("DROP TRIGGER raise ON app.note")
	}

	if r := a.post("ada", "push", body); r.status != http.StatusOK {
		t.Fatalf("at last: %d %s", r.status, r.code())
	}
	a.want("SELECT string_agg(body, ',' ORDER BY id) FROM app.note", "uno,due,three")
	a.wantRows(ada, "user:ada", 3)
}
