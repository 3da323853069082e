package systest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"synchro/internal/pgtest"
)

var errInjected = errors.New("injected failure")

// failing makes the core fail at a point, once per n passages.
func (c *core) failing(point string, n int64) {
	var passed atomic.Int64
	c.cfg.Fail = func(at string) error {
		if at == point && passed.Add(1)%n == 0 {
			return errInjected
		}
		return nil
	}
}

// Wherever the core ends, it goes on without a loss and without doing anything twice.
func TestCoreGoesOnAfterAFailure(t *testing.T) {
	for _, point := range []string{"apply", "stored", "committed"} {
		t.Run(point, func(t *testing.T) {
			c := newCore(t, pgtest.Config{})
			c.limits.BatchMaxRows = 20
			c.failing(point, 7)
			c.register()
			c.start()
			c.streaming()
			for seed := range uint64(2) {
				if err := randomWork(t.Context(), c.db, rand.New(rand.NewPCG(seed, 9)), 100); err != nil {
					t.Fatal(err)
				}
				c.equal()
			}
			c.want("SELECT count(*) FROM synchro.quarantine", "0")
		})
	}
}

// A crash between the baseline and the record of the slot starts the bootstrap anew.
func TestBootstrapStartsAnewAfterACrash(t *testing.T) {
	c := newCore(t, pgtest.Config{})
	c.register()
	c.exec("INSERT INTO app.item (id, owner) SELECT g, 'u1' FROM generate_series(1, 10) g")
	var passed atomic.Int64
	c.cfg.Fail = func(at string) error {
		if at == "baselined" && passed.Add(1) == 1 {
			// On a connection of its own: this is the worker's goroutine.
			if err := c.Exec(context.Background(), "UPDATE app.item SET owner = 'u2' WHERE id = 5; DELETE FROM app.item WHERE id = 6"); err != nil {
				t.Error(err)
			}
			return errInjected
		}
		return nil
	}
	c.start()
	c.streaming()
	c.equal()
	if passed.Load() != 2 {
		t.Errorf("%d bootstraps", passed.Load())
	}
	c.want("SELECT count(*) FROM synchro.scope_entry", "9")
}

// The server crashes and loses what it had not flushed: asynchronous commits of the core among it.
func TestServerCrashes(t *testing.T) {
	c := newCore(t, pgtest.Config{Fsync: true, Settings: []string{"wal_writer_delay = '2s'"}})
	c.register()
	c.start()
	c.streaming()
	for round := range uint64(4) {
		conn, err := c.Conn(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		work := make(chan error, 1)
		go func() { work <- randomWork(context.Background(), conn, rand.New(rand.NewPCG(round, 11)), 100000) }()
		time.Sleep(300 * time.Millisecond)
		if err := c.Restart(t.Context(), pgtest.Immediate); err != nil {
			t.Fatal(err)
		}
		<-work
		c.db = c.Connect(t, "", "")
		c.equal()
	}
}

// Connections that end take nothing along.
func TestConnectionsThatEnd(t *testing.T) {
	c := newCore(t, pgtest.Config{})
	c.register()
	c.start()
	c.streaming()
	for i, name := range []string{"synchro apply", "synchro stream", "synchro keeper", "synchro notify"} {
		if err := randomWork(t.Context(), c.db, rand.New(rand.NewPCG(uint64(i), 13)), 20); err != nil {
			t.Fatal(err)
		}
		c.exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1", name)
		if err := randomWork(t.Context(), c.db, rand.New(rand.NewPCG(uint64(i), 14)), 20); err != nil {
			t.Fatal(err)
		}
		c.equal()
	}
	c.want("SELECT count(*) FROM synchro.quarantine", "0")
}

// A slot that is behind what is materialized skips it.
func TestSlotBehindProgress(t *testing.T) {
	c := newCore(t, pgtest.Config{})
	c.register()
	c.start()
	c.streaming()
	c.exec("INSERT INTO app.item (id, owner) VALUES (1, 'u1')")
	c.materialized()
	c.exec("SELECT pg_switch_wal()")
	c.released()
	before := c.value("SELECT string_agg(e::text, ' ') FROM synchro.scope_entry e")
	c.exec("SELECT pg_copy_logical_replication_slot('core_slot', 'copy')")
	c.start()
	c.streaming()
	c.exec("INSERT INTO app.item (id, owner) VALUES (2, 'u2'); UPDATE app.item SET n = 3 WHERE id = 2")
	c.equal()
	c.released()
	// The copy stands where the slot stood before the second transaction.
	c.exec("SELECT pg_drop_replication_slot('core_slot'); SELECT pg_copy_logical_replication_slot('copy', 'core_slot')")
	after := c.value("SELECT string_agg(e::text, ' ' ORDER BY e.key) FROM synchro.scope_entry e")
	c.start()
	c.streaming()
	c.exec("INSERT INTO app.item (id, owner) VALUES (3, 'u3')")
	c.equal()
	if got := c.value("SELECT string_agg(e::text, ' ' ORDER BY e.key) FROM synchro.scope_entry e WHERE key < synchro._key_bytes('int64', '3')"); got != after || !strings.HasPrefix(after, before[:10]) {
		t.Errorf("entries changed: %s, then %s", after, got)
	}
}

// A slot that is gone, or has moved on without us, is never resumed silently.
func TestLostSlotsBlock(t *testing.T) {
	for name, lose := range map[string]string{
		"dropped":  "SELECT pg_drop_replication_slot('core_slot')",
		"replaced": "SELECT pg_drop_replication_slot('core_slot'); SELECT pg_create_logical_replication_slot('core_slot', 'pgoutput')",
		"advanced": "SELECT pg_replication_slot_advance('core_slot', pg_current_wal_lsn())",
		"outrun":   "DO $$ BEGIN FOR i IN 1 .. 8 LOOP PERFORM pg_logical_emit_message(false, 'x', 'y'); PERFORM pg_switch_wal(); END LOOP; END $$; CHECKPOINT",
	} {
		t.Run(name, func(t *testing.T) {
			c := newCore(t, pgtest.Config{Settings: []string{"max_slot_wal_keep_size = '16MB'", "min_wal_size = '32MB'", "max_wal_size = '32MB'"}})
			c.register()
			c.start()
			c.streaming()
			c.exec("INSERT INTO app.item (id, owner) VALUES (1, 'u1')")
			c.materialized()
			c.released()
			c.exec("INSERT INTO app.item (id, owner) VALUES (2, 'u1')")
			c.exec(lose)
			c.start()
			c.poll("block", "SELECT string_agg(class, ' ') FROM synchro.quarantine WHERE resolved_at IS NULL", "slot_lost")
			beat := c.value("SELECT heartbeat_at FROM synchro.progress")
			c.limits.MaxHeartbeatAge = time.Second
			c.poll("heartbeat", fmt.Sprintf("SELECT heartbeat_at > '%s' FROM synchro.progress", beat), "true")
		})
	}
}

func TestForeignSlotIsRefused(t *testing.T) {
	c := newCore(t, pgtest.Config{})
	c.exec("SELECT pg_create_physical_replication_slot('core_slot')")
	c.start()
	time.Sleep(500 * time.Millisecond)
	c.want("SELECT count(*) FROM pg_replication_slots WHERE slot_name = 'core_slot' AND slot_type = 'physical'", "1")
	c.want("SELECT slot_name FROM synchro.progress", "NULL")
}

// A walsender that synchronous_standby_names matches would hold up every commit of the cluster.
func TestSynchronousStandbyIsRefused(t *testing.T) {
	c := newCore(t, pgtest.Config{})
	c.register()
	c.start()
	c.streaming()
	c.exec("ALTER SYSTEM SET synchronous_standby_names = '*'")
	c.exec("SELECT pg_reload_conf()")
	c.poll("end of the stream", "SELECT count(*) FROM pg_stat_replication WHERE sync_state <> 'async'", "0")
	c.exec("ALTER SYSTEM RESET synchronous_standby_names")
	c.exec("SELECT pg_reload_conf()")
	c.exec("INSERT INTO app.item (id, owner) VALUES (1, 'u1')")
	c.equal()
}

// While the core cannot work it still answers the server, which would end the stream otherwise.
func TestStreamOutlivesAStandstill(t *testing.T) {
	c := newCore(t, pgtest.Config{Settings: []string{"wal_sender_timeout = '1s'"}})
	c.register()
	c.start()
	c.streaming()
	walsender := c.value("SELECT active_pid FROM pg_replication_slots WHERE slot_name = 'core_slot'")
	holder := c.Connect(t, "", "")
	if _, err := holder.Exec(t.Context(), "BEGIN; LOCK TABLE synchro.scope_entry IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	c.exec("INSERT INTO app.item (id, owner, big) SELECT g, 'u1', repeat('x', 1000) FROM generate_series(1, 20000) g")
	for range 10 {
		c.exec("UPDATE app.item SET n = n + 1 WHERE id <= 3000")
	}
	time.Sleep(4 * time.Second)
	if _, err := holder.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	c.equal()
	c.want("SELECT active_pid FROM pg_replication_slots WHERE slot_name = 'core_slot'", walsender)
}
