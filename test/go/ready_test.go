package systest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"synchro/internal/pgtest"
	"synchro/protocol"
)

// ready asks GET /ready, which says one word and nothing else.
func (a *app) ready() bool {
	a.t.Helper()
	response, err := http.Get(a.serve.URL + "/ready")
	if err != nil {
		a.t.Fatal(err)
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	want := map[int]string{http.StatusOK: `{"ready":true}`, http.StatusServiceUnavailable: `{"ready":false}`}[response.StatusCode]
	if string(body) != want {
		a.t.Fatalf("/ready answers %d %s", response.StatusCode, body)
	}
	return response.StatusCode == http.StatusOK
}

func (a *app) awaitUnready(check string) {
	a.t.Helper()
	pgtest.Poll(a.t, settle, "end of readiness", func() bool { return !a.ready() })
	if check == "" {
		return
	}
	pgtest.Poll(a.t, settle, "failed check "+check, func() bool {
		return a.value("SELECT coalesce(synchro.synchro_health_detail()->$1->>'state', 'absent')", check) != "ok"
	})
}

// Every single fault ends readiness, and its repair brings it back.
func TestReadinessFollowsEachFault(t *testing.T) {
	t.Parallel()
	a := startApp(t, pgtest.Config{Settings: []string{"synchro.max_worker_heartbeat_age_seconds = 3"}})
	a.exec(`CREATE FUNCTION app.scopes_of(p_user text) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
		BEGIN ATOMIC SELECT 'team:a'; END`)
	a.exec(`REVOKE EXECUTE ON FUNCTION app.scopes_of(text) FROM PUBLIC; GRANT EXECUTE ON FUNCTION app.scopes_of(text) TO synchro_owner, synchro_worker;
		SELECT synchro.synchro_register_assignment_function('app.scopes_of')`)
	a.awaitReady()
	a.exec("SET synchro.ddl_guard = off")
	fence := a.value("SELECT t.tgname FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid WHERE t.tgrelid = 'app.note'::regclass AND p.proname = 'synchro_fence' LIMIT 1")
	var thaw func()
	run := func(sql string) func() { return func() { a.exec(sql) } }
	configure := func(line string) func() { return func() { reconfigure(t, a.Cluster, line) } }
	for _, fault := range []struct {
		check           string
		inflict, repair func()
	}{
		{"triggers", run(fmt.Sprintf("ALTER TABLE app.note DISABLE TRIGGER %q", fence)), run(fmt.Sprintf("ALTER TABLE app.note ENABLE ALWAYS TRIGGER %q", fence))},
		{"triggers", run(fmt.Sprintf("ALTER TABLE app.note ENABLE TRIGGER %q", fence)), run(fmt.Sprintf("ALTER TABLE app.note ENABLE ALWAYS TRIGGER %q", fence))},
		{"publication_relations", run("ALTER PUBLICATION synchro DROP TABLE app.note"), run("ALTER PUBLICATION synchro ADD TABLE app.note")},
		{"publication_relations", run("CREATE TABLE app.stray (id int PRIMARY KEY); ALTER PUBLICATION synchro ADD TABLE app.stray"), run("ALTER PUBLICATION synchro DROP TABLE app.stray")},
		{"publication", run("ALTER PUBLICATION synchro SET (publish = 'insert')"), run("ALTER PUBLICATION synchro SET (publish = 'insert, update, delete, truncate')")},
		{"publication", run("ALTER PUBLICATION synchro SET (publish_via_partition_root = false)"), run("ALTER PUBLICATION synchro SET (publish_via_partition_root = true)")},
		{"relations", run("ALTER TABLE app.note RENAME TO renamed"), run("ALTER TABLE app.renamed RENAME TO note")},
		{"relations", run("ALTER TABLE app.note REPLICA IDENTITY FULL"), run("ALTER TABLE app.note REPLICA IDENTITY DEFAULT")},
		{"relations", run("ALTER TABLE app.note SET SCHEMA public"), run("ALTER TABLE public.note SET SCHEMA app")},
		{"columns", run("ALTER TABLE app.note RENAME body TO text"), run("ALTER TABLE app.note RENAME text TO body")},
		{"key", run("ALTER TABLE app.note DROP CONSTRAINT note_pkey"), run("ALTER TABLE app.note ADD PRIMARY KEY (id)")},
		{"privileges", run("REVOKE SELECT ON app.note FROM synchro_worker"), run("GRANT SELECT ON app.note TO synchro_worker")},
		{"functions", run("ALTER FUNCTION app.note_scopes(uuid) RENAME TO hidden"), run("ALTER FUNCTION app.hidden(uuid) RENAME TO note_scopes")},
		{"worker_login", run("CREATE ROLE second LOGIN IN ROLE synchro_worker"), run("DROP ROLE second")},
		{"assignment",
			run("CREATE OR REPLACE FUNCTION app.scopes_of(p_user text) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro BEGIN ATOMIC SELECT 'team:b'; END"),
			run("CREATE OR REPLACE FUNCTION app.scopes_of(p_user text) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro BEGIN ATOMIC SELECT 'team:a'; END")},
		{"assignment", run("ALTER FUNCTION app.scopes_of(text) RENAME TO other"), run("ALTER FUNCTION app.other(text) RENAME TO scopes_of")},
		{"capture", run("INSERT INTO synchro.quarantine (stream_generation, commit_lsn, class) VALUES (1, '0/1', 'decode_failed')"), run("SELECT synchro.synchro_retry_capture()")},
		{"limits", configure("synchro.max_wal_lag_seconds = 0"), configure("synchro.max_wal_lag_seconds = 30")},
		{"limits", configure("synchro.max_wal_lag_bytes = 0"), configure("synchro.max_wal_lag_bytes = 64MB")},
		{"limits", configure("synchro.max_worker_heartbeat_age_seconds = 0"), configure("synchro.max_worker_heartbeat_age_seconds = 3")},
		{"heartbeat", func() { thaw = a.freeze() }, func() { thaw() }},
		{"lag_bytes", func() {
			reconfigure(t, a.Cluster, "synchro.max_wal_lag_bytes = 1MB", "synchro.max_worker_heartbeat_age_seconds = 60")
			thaw = a.freeze()
			a.exec("INSERT INTO app.note (id, owner, body) SELECT gen_random_uuid(), 'ada', repeat('x', 1000) FROM generate_series(1, 3000)")
		}, func() { thaw() }},
	} {
		if !a.ready() {
			t.Fatalf("not ready before %s: %s", fault.check, a.Health(context.Background()))
		}
		fault.inflict()
		a.awaitUnready(fault.check)
		// What the stream can no longer carry blocks, though no row says so; a retry after the repair goes on.
		drifted := a.value("SELECT EXISTS (SELECT FROM synchro._drift() WHERE blocks)") == "true"
		if drifted {
			pgtest.Poll(t, settle, "block", func() bool {
				return a.value("SELECT string_agg(class, ',') FROM synchro.quarantine WHERE resolved_at IS NULL") == "registered_relation_drift"
			})
			a.want("SELECT synchro.synchro_health_detail()->'capture'->>'reason'", "registered_relation_drift")
			pgtest.Poll(t, settle, "reason of what is unknown without a stream", func() bool {
				return a.value("SELECT synchro.synchro_health_detail()->'asynchronous'->>'reason'") == "not_streaming"
			})
		}
		fault.repair()
		if drifted {
			a.exec("SELECT synchro.synchro_retry_capture()")
		}
		a.awaitReady()
	}

	// Faults that mend themselves: a core that died, a server that is away.
	core := awaitWorking(t, a.Cluster)
	if err := a.Kill(core.CorePID); err != nil {
		t.Fatal(err)
	}
	a.awaitUnready("")
	a.awaitReady()
	if err := a.Stop(pgtest.Fast); err != nil {
		t.Fatal(err)
	}
	a.awaitUnready("")
	a.restart(pgtest.Fast)
}

// Each database of a cluster has a login in the worker's group; the others' are no fault.
func TestTwoDatabasesAreReady(t *testing.T) {
	t.Parallel()
	c := pgtest.StartWithExtension(t, pgtest.Config{Database: "postgres, app"})
	for _, database := range []string{"postgres", "app"} {
		conn := c.Connect(t, "", database)
		if _, err := conn.Exec(t.Context(), "CREATE EXTENSION IF NOT EXISTS synchro"); err != nil {
			t.Fatal(err)
		}
	}
	for _, database := range []string{"app", "postgres"} {
		conn, health := c.Connect(t, "", database), ""
		err := pgtest.WaitFor(t.Context(), settle, "readiness of both databases", func() (ready bool, err error) {
			err = conn.QueryRow(t.Context(), "SELECT (synchro.synchro_health()->>'ready')::boolean, synchro.synchro_health_detail()::text").Scan(&ready, &health)
			return ready, err
		})
		if err != nil {
			t.Fatalf("%v: %s", err, health)
		}
	}
}

// Inside the limits a write load is no fault.
func TestReadyUnderWrites(t *testing.T) {
	t.Parallel()
	a := startApp(t, pgtest.Config{})
	a.insertNotes("ada", 1, 100)
	writer := a.Connect(t, "", "")
	until := time.Now().Add(2 * time.Second)
	ended := make(chan error, 1)
	go func() {
		for time.Now().Before(until) {
			if _, err := writer.Exec(context.Background(), "UPDATE app.note SET n = n + 1"); err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	for time.Now().Before(until) {
		if !a.ready() {
			t.Fatalf("not ready: %s", a.Health(context.Background()))
		}
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

// wantBlocked checks that clients are told of a blocked capture.
func (a *app) wantBlocked() {
	a.t.Helper()
	a.awaitUnready("")
	d := a.device("ada", "ada-blocked")
	if err := d.Connect(context.Background(), false); err != nil {
		a.t.Fatal(err)
	}
	body := pullBody(a.t, d, 10, map[string]protocol.ScopeCursor{"user:ada": {}})
	var r reply
	pgtest.Poll(a.t, settle, "refusal of a pull", func() bool {
		r = a.post("ada", "pull", body)
		return r.status == http.StatusServiceUnavailable
	})
	if r.code() != "temporary_unavailable capture_blocked" || r.header.Get("Retry-After") == "" {
		a.t.Errorf("a pull while capture is blocked: %s", r.code())
	}
}

// A slot that is gone took changes with it: nothing goes on as if nothing had happened.
func TestLostSlotBlocks(t *testing.T) {
	t.Parallel()
	a := startApp(t, pgtest.Config{})
	a.insertNotes("ada", 1, 5)
	a.materialized()
	a.exec(`DO $$ BEGIN
	  LOOP
	    BEGIN
	      PERFORM pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active;
	      PERFORM pg_drop_replication_slot(slot_name) FROM pg_replication_slots;
	      EXIT;
	    EXCEPTION WHEN object_in_use THEN
	    END;
	  END LOOP;
	END $$`)
	a.insertNotes("ada", 101, 5)
	a.awaitUnready("slot")
	a.wantBlocked()
	a.want("SELECT string_agg(class, ',') FROM synchro.quarantine WHERE resolved_at IS NULL", "slot_lost")
	a.exec("SELECT synchro.synchro_retry_capture()")
	pgtest.Poll(t, settle, "the block again", func() bool {
		return a.value("SELECT count(*) FROM synchro.quarantine WHERE resolved_at IS NULL AND class = 'slot_lost'") == "1"
	})
	a.want("SELECT count(*) FROM pg_replication_slots", "0")
}

// A change that the publication did not let through is noticed, never skipped.
func TestNarrowedPublicationBlocks(t *testing.T) {
	t.Parallel()
	a := startApp(t, pgtest.Config{})
	a.insertNotes("ada", 1, 5)
	a.exec("SET synchro.ddl_guard = off")
	a.exec("ALTER PUBLICATION synchro SET (publish = 'insert')")
	a.exec("UPDATE app.note SET n = 1 WHERE id = md5('1')::uuid")
	a.exec("ALTER PUBLICATION synchro SET (publish = 'insert, update, delete, truncate')")
	a.wantBlocked()
	a.want("SELECT string_agg(class, ',') FROM synchro.quarantine WHERE resolved_at IS NULL", "fence_mismatch")
}

// The WAL between the end of a publication and its return cannot be decoded: no retry goes on as if nothing had been.
func TestDroppedPublicationBlocks(t *testing.T) {
	t.Parallel()
	a := startApp(t, pgtest.Config{})
	a.insertNotes("ada", 1, 5)
	a.materialized()
	a.exec("SET synchro.ddl_guard = off")
	a.exec("DROP PUBLICATION synchro")
	a.wantBlocked()
	a.exec("UPDATE app.note SET n = 1")
	a.exec("DO $$ BEGIN PERFORM synchro._create_publication(), synchro._publish('app.note'::regclass); END $$")
	a.exec("SELECT synchro.synchro_retry_capture()")
	pgtest.Poll(t, settle, "the block again", func() bool {
		return a.value("SELECT string_agg(class, ',') FROM synchro.quarantine WHERE resolved_at IS NULL") == "decode_failed"
	})
}

// Triggers of the table off for one statement, as a superuser can do it.
const withoutTriggers = `DO $$
DECLARE
  v_trigger name;
BEGIN
  ALTER TABLE app.note DISABLE TRIGGER ALL;
  %s;
  FOR v_trigger IN SELECT tgname FROM pg_trigger WHERE tgrelid = 'app.note'::regclass AND NOT tgisinternal LOOP
    EXECUTE format('ALTER TABLE app.note ENABLE ALWAYS TRIGGER %%I', v_trigger);
  END LOOP;
END $$`

// A TRUNCATE past the guard, rows written without triggers, a changed type: each blocks, and says no more than its class.
func TestWhatCannotBeCapturedBlocks(t *testing.T) {
	t.Parallel()
	for class, sql := range map[string]string{
		"truncate":                  fmt.Sprintf(withoutTriggers, "TRUNCATE app.note"),
		"fence_mismatch":            fmt.Sprintf(withoutTriggers, "UPDATE app.note SET n = 7"),
		"registered_relation_drift": "ALTER TABLE app.note ALTER n TYPE bigint",
	} {
		t.Run(class, func(t *testing.T) {
			t.Parallel()
			a := startApp(t, pgtest.Config{})
			a.insertNotes("ada", 1, 5)
			a.materialized()
			shown := a.value("SELECT count(*) FROM synchro.scope_entry")
			a.exec("SET synchro.ddl_guard = off")
			a.exec(sql)
			a.insertNotes("ada", 101, 5)
			a.wantBlocked()
			a.want("SELECT string_agg(class, ',') FROM synchro.quarantine WHERE resolved_at IS NULL", class)
			a.want("SELECT count(*) FROM synchro.scope_entry", shown) // nothing of it, and nothing after it
		})
	}
}
