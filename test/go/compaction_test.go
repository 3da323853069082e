package systest

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"synchro/internal/pgtest"
)

// The worker answers a call of synchro_compact after everything committed before is materialized.
func TestCompactionOnRequest(t *testing.T) {
	c := newCore(t, pgtest.Config{})
	c.cfg.Failed = func(err error) { t.Logf("compaction: %v", err) }
	c.register()
	c.start()
	c.streaming()
	c.exec("INSERT INTO app.item (id, owner) SELECT g, 'u1' FROM generate_series(1, 10) g")
	c.exec("DELETE FROM app.item WHERE id <= 3")
	for _, want := range []string{"2", "1", "0"} {
		if got := c.value("(SELECT synchro.synchro_compact(NULL, 2) ->> 'deleted_entries')"); got != want {
			t.Errorf("%s entries deleted, want %s", got, want)
		}
	}
	c.want("SELECT floor_kind || ' ' || (floor_lsn = high_lsn) FROM synchro.scope", "transaction_end true")
	c.equal()
}

// A call does not wait for ever for a worker that does not come to it. What it asked for is done all the same.
func TestCompactionIsNotAwaitedForEver(t *testing.T) {
	t.Parallel()
	c := newCore(t, pgtest.Config{})
	c.register()
	c.start()
	c.streaming()
	c.exec("INSERT INTO app.item (id, owner) SELECT g, 'u1' FROM generate_series(1, 10) g")
	c.materialized()
	holder := c.Connect(t, "", "")
	if _, err := holder.Exec(t.Context(), "BEGIN; SELECT FROM synchro.scope FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	c.exec("DELETE FROM app.item WHERE id <= 3")
	_, err := c.db.Exec(t.Context(), "SELECT synchro.synchro_compact()")
	if refused := (*pgconn.PgError)(nil); !errors.As(err, &refused) || refused.Code != "55000" {
		t.Errorf("%v, want 55000", err)
	}
	c.want("SELECT count(*) FROM synchro.compaction", "0")
	if _, err := holder.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	c.poll("compaction", "SELECT sum(deleted_entries) FROM synchro.compaction", "3")
}

// Compaction and the applier at the same rows: neither fails, whoever comes first.
func TestCompactionMeetsTheApplier(t *testing.T) {
	for _, end := range []string{"COMMIT", "ROLLBACK"} {
		t.Run(end, func(t *testing.T) {
			c := newCore(t, pgtest.Config{})
			c.register()
			c.start()
			c.streaming()
			c.exec("INSERT INTO app.item (id, owner) SELECT g, 'u1' FROM generate_series(1, 10) g")
			c.exec("UPDATE app.item SET owner = 'u2' WHERE id <= 5")
			c.materialized()
			compaction := c.Connect(t, "", "")
			var deleted int
			if _, err := compaction.Exec(t.Context(), "BEGIN"); err != nil {
				t.Fatal(err)
			}
			if err := compaction.QueryRow(t.Context(), "SELECT o_deleted FROM synchro._compact_scopes(0, 100)").Scan(&deleted); err != nil || deleted != 5 {
				t.Fatalf("%d entries deleted, %v", deleted, err)
			}
			apply := c.value("(SELECT pid FROM pg_stat_activity WHERE application_name = 'synchro apply')")
			c.exec("UPDATE app.item SET owner = 'u1' WHERE id <= 3") // they come back, and a sixth row leaves
			c.exec("UPDATE app.item SET owner = 'u2' WHERE id = 6")
			c.poll("waiting applier", "(SELECT wait_event_type FROM pg_stat_activity WHERE application_name = 'synchro apply')", "Lock")
			if _, err := compaction.Exec(t.Context(), end); err != nil {
				t.Fatal(err)
			}
			c.equal()
			c.want("(SELECT pid FROM pg_stat_activity WHERE application_name = 'synchro apply')", apply)
			// The other way round: what the applier holds is passed over.
			if _, err := compaction.Exec(t.Context(), "BEGIN; UPDATE synchro.scope SET high_lsn = high_lsn"); err != nil {
				t.Fatal(err)
			}
			c.want("(SELECT o_deleted FROM synchro._compact_scopes(0, 100))", "0")
			if _, err := compaction.Exec(t.Context(), "ROLLBACK"); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// The worker compacts on its own when the time has come, and after its end in the middle goes on where it was.
func TestScheduledCompaction(t *testing.T) {
	c := newCore(t, pgtest.Config{})
	c.limits.CompactEvery, c.limits.StaleClientAfter = time.Second, 24*time.Hour
	var passed atomic.Int64
	c.cfg.Fail = func(at string) error {
		if at == "compact" && passed.Add(1) <= 2 {
			return errInjected
		}
		return nil
	}
	var failed atomic.Int64
	c.cfg.Failed = func(error) { failed.Add(1) }
	c.register()
	c.start()
	c.streaming()
	c.exec("INSERT INTO synchro.client (client_id, user_id, created_at) VALUES ('old', 'u', now() - interval '2 days'), ('new', 'u', now())")
	c.exec("INSERT INTO app.item (id, owner) SELECT g, 'u1' FROM generate_series(1, 100) g")
	c.exec("DELETE FROM app.item WHERE id > 50")
	c.exec("INSERT INTO synchro.tombstone (rel_no, key, server_version, deleted_at) VALUES (1, '100000', 'v', now() - interval '2 days'), (1, '100001', 'v', now())")
	c.poll("compaction", "(SELECT count(*) FROM synchro.scope_entry WHERE state = 'x')", "0")
	c.poll("expiry", "(SELECT string_agg(client_id, ' ') FROM synchro.client WHERE expired)", "old")
	c.poll("tombstones", "(SELECT string_agg(key, ' ') FROM synchro.tombstone WHERE key IN ('100000', '100001'))", "100001")
	if failed.Load() != 2 {
		t.Errorf("%d failures told, want 2", failed.Load())
	}
	c.want("SELECT count(*) FROM synchro.quarantine", "0")
	// Off: nothing happens until it is asked for.
	c.limits.CompactEvery = 0
	c.exec("DELETE FROM app.item WHERE id > 40")
	c.materialized()
	time.Sleep(1500 * time.Millisecond)
	c.want("SELECT count(*) FROM synchro.scope_entry WHERE state = 'x'", "10")
	c.want("(SELECT synchro.synchro_compact() ->> 'deleted_entries')", "10")
	c.equal()
}

// Killed again and again while it compacts: entries and floors always fit, and in the end everything is done.
func TestCompactionIsKilled(t *testing.T) {
	c := startHost(t, "process", "synchro.compact_schedule = '1s'")
	mustExec(t, c, itemApp)
	mustExec(t, c, itemRegistration)
	mustExec(t, c, "INSERT INTO app.item (id, owner) SELECT g, 'u' || g % 500 FROM generate_series(1, 20000) g")
	mustExec(t, c, "SELECT synchro.synchro_compact(NULL, 1)") // after everything before is materialized
	conn := c.Connect(t, "", "")
	consistent := func() (left int) {
		t.Helper()
		// Ten rows of each scope leave at a time. A scope without a floor has all of its left entries: none was deleted without it.
		var wrong int
		if err := conn.QueryRow(t.Context(), `SELECT count(*) FILTER (WHERE s.floor_kind = 'generation_start' AND n.left % 10 <> 0), coalesce(sum(n.left), 0)
			FROM synchro.scope s JOIN LATERAL (SELECT count(*) AS left FROM synchro.scope_entry e WHERE e.scope_no = s.scope_no AND e.state = 'x') n ON true`).Scan(&wrong, &left); err != nil {
			t.Fatal(err)
		}
		if wrong > 0 {
			t.Errorf("%d scopes lost entries without a floor", wrong)
		}
		return left
	}
	for round := range 4 {
		st := awaitWorking(t, c)
		mustExec(t, c, fmt.Sprintf("DELETE FROM app.item WHERE id > %d - 5000 AND id <= %[1]d", 20000-5000*round))
		pgtest.Poll(t, settle, "compaction under way, or done", func() bool {
			return c.Exec(t.Context(), "SELECT 1 / count(*) FROM pg_stat_activity WHERE application_name = 'synchro compact'") == nil
		})
		if err := syscall.Kill(st.CorePID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		awaitOther(t, c, st)
		consistent()
	}
	pgtest.Poll(t, settle, "everything compacted", func() bool {
		mustExec(t, c, "SELECT synchro.synchro_compact(NULL, 1)") // after everything before is materialized
		return consistent() == 0
	})
	var floors int
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM synchro.scope WHERE floor_kind = 'transaction_end' AND floor_lsn = high_lsn").Scan(&floors); err != nil || floors == 0 {
		t.Errorf("%d floors, %v", floors, err)
	}
}
