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
