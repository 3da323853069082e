package systest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"synchro/internal/pgtest"
	"synchro/worker"
)

// blockedBy waits for a block of the class.
func (c *core) blockedBy(class string) {
	c.t.Helper()
	c.poll("block", "SELECT string_agg(class, ' ') FROM synchro.quarantine WHERE resolved_at IS NULL", class)
	pgtest.Poll(c.t, settle, "blocked state", func() bool { return c.state() == worker.Blocked })
}

const triggersOn = `ALTER TABLE app.item ENABLE ALWAYS TRIGGER synchro_fence, ENABLE ALWAYS TRIGGER synchro_key_guard,
	ENABLE ALWAYS TRIGGER synchro_truncate_guard`

// What cannot be materialized blocks: earlier transactions are there, later ones wait, nothing of the bad one is seen.
func TestPoisonBlocks(t *testing.T) {
	for class, spoil := range map[string]string{
		"registered_relation_drift": "ALTER TABLE app.item RENAME n TO m; UPDATE app.item SET m = 2 WHERE id = 1; ALTER TABLE app.item RENAME m TO n",
		"fence_mismatch":            "ALTER TABLE app.item DISABLE TRIGGER USER; UPDATE app.item SET n = 2 WHERE id = 1; " + triggersOn,
		"truncate":                  "ALTER TABLE app.item DISABLE TRIGGER USER; TRUNCATE app.item; " + triggersOn,
		"scope_evaluation_failed":   "UPDATE app.item SET owner = repeat('x', 300), n = 2 WHERE id = 1",
	} {
		t.Run(class, func(t *testing.T) {
			c := newCore(t, pgtest.Config{})
			c.register()
			c.start()
			c.streaming()
			c.exec("INSERT INTO app.item (id, owner) VALUES (1, 'u1'), (2, 'u1')")
			c.materialized()
			acked := c.value("SELECT confirmed_flush_lsn FROM pg_replication_slots")
			c.exec("SET synchro.ddl_guard = off")
			c.exec("BEGIN; " + spoil + "; COMMIT")
			c.exec("CREATE TABLE app.other (x int)")
			c.blockedBy(class)
			c.limits.MaxHeartbeatAge = time.Second
			done := c.value("SELECT end_lsn FROM synchro.progress")
			beat := c.value("SELECT heartbeat_at FROM synchro.progress")
			c.poll("heartbeat", fmt.Sprintf("SELECT heartbeat_at > '%s' FROM synchro.progress", beat), "true")
			c.want("SELECT count(*) FROM synchro.scope_entry WHERE state = 'l'", "2")
			c.want(fmt.Sprintf("SELECT end_lsn = '%s' FROM synchro.progress", done), "true")
			c.want(fmt.Sprintf("SELECT confirmed_flush_lsn >= '%s' AND confirmed_flush_lsn <= (SELECT commit_lsn FROM synchro.quarantine) FROM pg_replication_slots", acked), "true")

			// Trying again without a repair blocks again, at the same place.
			lsn := c.value("SELECT commit_lsn FROM synchro.quarantine")
			c.exec("SELECT synchro.synchro_retry_capture()")
			c.poll("second block", "SELECT count(*) FROM synchro.quarantine", "2")
			c.want(fmt.Sprintf("SELECT commit_lsn = '%s' AND attempts = 2 FROM synchro.quarantine WHERE resolved_at IS NULL", lsn), "true")
		})
	}
}

// A block is recorded although the end of the session broke off what the keeper was doing: here its heartbeats wait for a lock.
func TestBlockIsRecordedWhileHeartbeatsWait(t *testing.T) {
	c := newCore(t, pgtest.Config{})
	c.limits.MaxHeartbeatAge = 200 * time.Millisecond
	c.register()
	c.start()
	c.streaming()
	other := c.Connect(t, "", "")
	if _, err := other.Exec(t.Context(), "BEGIN; SELECT FROM synchro.progress FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond) // a beat is due, and waits
	c.exec("SET synchro.ddl_guard = off")
	c.exec("BEGIN; ALTER TABLE app.item DISABLE TRIGGER USER; TRUNCATE app.item; " + triggersOn + "; COMMIT")
	c.poll("block", "SELECT string_agg(class, ' ') FROM synchro.quarantine WHERE resolved_at IS NULL", "truncate")
	if _, err := other.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	c.blockedBy("truncate")
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(slices.DeleteFunc(slices.Clone(c.states), func(s worker.State) bool { return s != worker.Streaming })); n > 3 {
		t.Errorf("%d sessions until the block: %v", n, c.states)
	}
}

// A repair and a retry go on with the same transaction.
func TestRepairAndRetry(t *testing.T) {
	c := newCore(t, pgtest.Config{})
	c.register()
	c.start()
	c.streaming()
	c.exec("INSERT INTO app.item (id, owner) VALUES (1, 'u1')")
	c.materialized()
	c.exec("REVOKE EXECUTE ON FUNCTION app.item_scopes(bigint) FROM synchro_worker; ALTER FUNCTION app.item_scopes(bigint) RENAME TO hidden")
	c.exec("UPDATE app.item SET n = 1")
	c.exec("INSERT INTO app.item (id, owner) VALUES (2, 'u2')")
	c.poll("block", "SELECT count(*) FROM synchro.quarantine WHERE resolved_at IS NULL", "1")
	c.exec("ALTER FUNCTION app.hidden(bigint) RENAME TO item_scopes; GRANT EXECUTE ON FUNCTION app.item_scopes(bigint) TO synchro_worker")
	c.exec("SELECT synchro.synchro_retry_capture()")
	c.equal()
	c.want("SELECT string_agg(resolution, ' ') FROM synchro.quarantine", "retried")
}

// Registration is ordered with the changes around it; an unregistered table leaves nothing and can come back.
func TestActivationsKeepTheirPlace(t *testing.T) {
	c := newCore(t, pgtest.Config{})
	c.start()
	c.streaming()
	c.exec("INSERT INTO app.item (id, owner) SELECT g, 'u' || g % 2 FROM generate_series(1, 10) g")
	c.exec("BEGIN; INSERT INTO app.item (id, owner) VALUES (11, 'u1'); " + itemRegistration + "; COMMIT")
	c.exec("INSERT INTO app.item (id, owner) VALUES (12, 'u1')")
	c.equal()
	c.want("SELECT registry_generation FROM synchro.progress", "2")
	c.want("SELECT count(*) FROM synchro.scope WHERE affected_version = 2", "2")
	table := c.value("SELECT table_id FROM synchro.relation")

	c.exec("SELECT synchro.synchro_unregister_table('app.item')")
	c.exec("INSERT INTO app.item (id, owner) VALUES (13, 'u1')")
	c.poll("removal", "SELECT count(*) FROM synchro.scope_entry", "0")
	c.poll("triggers", "SELECT count(*) FROM pg_trigger WHERE tgrelid = 'app.item'::regclass AND NOT tgisinternal", "0")
	c.want("SELECT count(*) FROM synchro_data.r_1", "0")

	c.register()
	c.equal()
	c.want("SELECT table_id FROM synchro.relation", table)
	c.exec("SELECT synchro.synchro_register_table('app.item', 'app.item_scopes', 'multi_scope', p_push_policy => 'read_only', p_deleted_at_col => 'deleted_at', p_max_scope_fanout => 3)")
	c.exec("UPDATE app.item SET owner = 'u3' WHERE id = 1")
	c.equal()
	c.poll("the changed rule", "SELECT registry_generation FROM synchro.progress", "5")
}

// Generations that were registered while the core was down activate in turn.
func TestActivationsAfterAPause(t *testing.T) {
	c := newCore(t, pgtest.Config{})
	c.start()
	c.streaming()
	c.released()
	c.exec("INSERT INTO app.item (id, owner) VALUES (1, 'u1')")
	c.register()
	c.exec("UPDATE app.item SET owner = 'u2'")
	c.exec("SELECT synchro.synchro_register_table('app.item', 'app.item_scopes', 'multi_scope', p_push_policy => 'read_only', p_deleted_at_col => 'deleted_at', p_max_scope_fanout => 3)")
	c.exec("INSERT INTO app.item (id, owner) VALUES (2, 'u1')")
	c.start()
	c.equal()
	c.poll("the changed rule", "SELECT registry_generation FROM synchro.progress", "3")
}

// Idle, the core writes its heartbeat and nothing else, and the slot keeps moving.
func TestIdleCore(t *testing.T) {
	c := newCore(t, pgtest.Config{})
	c.limits.MaxHeartbeatAge = 2 * time.Second
	c.register()
	c.start()
	c.streaming()
	c.materialized()
	written := func() string {
		c.exec("SELECT pg_stat_force_next_flush()")
		return c.value("SELECT n_tup_upd FROM pg_stat_user_tables WHERE relid = 'synchro.progress'::regclass")
	}
	time.Sleep(time.Second)
	before := written()
	moved := c.value("SELECT confirmed_flush_lsn FROM pg_replication_slots")
	time.Sleep(10 * time.Second)
	// Once a second; the count of the core's connection lags behind by one or two now and then.
	c.want(fmt.Sprintf("SELECT %s - %s BETWEEN 5 AND 14", written(), before), "true")
	c.exec("CREATE TABLE app.busy AS SELECT g, repeat('x', 500) FROM generate_series(1, 20000) g")
	c.poll("moving slot", fmt.Sprintf("SELECT confirmed_flush_lsn > '%s'::pg_lsn + 10000000 FROM pg_replication_slots", moved), "true")
}

// A transaction whose very index of rows exceeds the memory limit is read in several passes.
func TestTransactionBeyondTheMemoryLimit(t *testing.T) {
	c := newCore(t, pgtest.Config{})
	c.limits = worker.Limits{MaxHeartbeatAge: time.Second, BatchMaxRows: 500, BatchMaxBytes: 64 << 10, MemoryBytes: 1 << 20}
	c.register()
	c.start()
	c.streaming()
	c.exec(`BEGIN; INSERT INTO app.item (id, owner, shared) SELECT g, 'u' || g % 50, g % 3 = 0 FROM generate_series(1, 12000) g;
		UPDATE app.item SET n = id WHERE id % 2 = 0; DELETE FROM app.item WHERE id % 10 = 0; COMMIT`)
	c.equal()
	c.want("SELECT count(*) FROM app.item", "10800")
}

// The version of a push is forgotten once it is materialized.
func TestFencesOfPushesAreSwept(t *testing.T) {
	c := newCore(t, pgtest.Config{})
	c.register()
	c.start()
	c.streaming()
	c.exec(`BEGIN; SELECT synchro._push_context(7, 'u1', NULL); INSERT INTO app.item (id, owner) VALUES (1, 'u1');
		SELECT synchro._push_context(NULL, NULL, NULL); SELECT synchro._emit_push(7, 3); COMMIT`)
	c.equal()
	c.want("SELECT write_epoch FROM synchro.client_materialized WHERE client_no = 7", "3")
	c.poll("sweep", "SELECT count(*) FROM synchro.push_fence", "0")
}
