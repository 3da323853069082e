package systest

import (
	"testing"

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
