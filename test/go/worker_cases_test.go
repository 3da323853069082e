package systest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"synchro/internal/pgtest"
)

// streamingCore is a worker that streams with the table registered.
func streamingCore(t *testing.T, cfg pgtest.Config) *core {
	t.Helper()
	c := newCore(t, cfg)
	c.register()
	c.start()
	c.streaming()
	return c
}

// Transactions of exactly a batch, of one row less and more, and of several batches: all of each arrives.
func TestTransactionsOfBatchSizes(t *testing.T) {
	t.Parallel()
	c := newCore(t, pgtest.Config{})
	c.limits.BatchMaxRows = 100
	c.register()
	c.start()
	c.streaming()
	total := 0
	for _, n := range []int{99, 100, 101, 199, 200, 201, 1000} {
		c.exec(fmt.Sprintf("INSERT INTO app.item (id, owner) SELECT g, 'u' || g %% 3 FROM generate_series(%d, %d) g", total+1, total+n))
		total += n
		c.materialized()
		c.want("SELECT count(*) FROM synchro.scope_entry WHERE state = 'l'", fmt.Sprint(total))
	}
	c.exec("UPDATE app.item SET n = n + 1 WHERE id <= 200; UPDATE app.item SET owner = 'u9' WHERE id BETWEEN 301 AND 400; DELETE FROM app.item WHERE id <= 100")
	c.equal()
	// The same while it stands still: what follows each other shares batches, and none is lost at their edges.
	c.stop()
	for i := range 7 {
		c.exec(fmt.Sprintf("INSERT INTO app.item (id, owner) SELECT g, 'late' FROM generate_series(%d, %d) g", 10000+i*50, 10000+i*50+49))
	}
	c.start()
	c.equal()
}

// Registered tables at rest, others busy: the slot moves on, and hardly anything is written for it.
func TestSlotMovesWhileRegisteredTablesRest(t *testing.T) {
	t.Parallel()
	c := streamingCore(t, pgtest.Config{})
	c.exec("CREATE TABLE app.busy (id int, v text)")
	c.materialized()
	from := c.value("SELECT pg_current_wal_lsn()")
	before := c.value("SELECT n_tup_upd FROM pg_stat_user_tables WHERE relid = 'synchro.progress'::regclass")
	for range 20 {
		c.exec("INSERT INTO app.busy SELECT g, repeat('x', 500) FROM generate_series(1, 2000) g")
	}
	c.exec("CHECKPOINT") // logs the running transactions, from which the slot learns
	c.poll("acknowledged and released WAL", fmt.Sprintf(`SELECT confirmed_flush_lsn > '%s' AND restart_lsn > '%[1]s' FROM pg_replication_slots`, from), "true")
	c.poll("statistics", "SELECT count(*) FROM app.busy", "40000")
	if after := c.value("SELECT coalesce(max(n_tup_upd), 0) - " + before + " FROM pg_stat_user_tables WHERE relid = 'synchro.progress'::regclass"); len(after) > 2 {
		t.Errorf("%s writes of progress for transactions without registered rows", after)
	}
	c.exec("INSERT INTO app.item (id, owner) VALUES (1, 'u1')")
	c.equal()
}

// A backlog that is mostly other people's is decoded once: catching up takes about as long as reading it takes.
func TestForeignBacklogIsReadOnce(t *testing.T) {
	t.Parallel()
	c := streamingCore(t, pgtest.Config{})
	c.exec("CREATE TABLE app.busy (id int, v text)")
	c.materialized()
	c.stop()
	c.exec("INSERT INTO app.item (id, owner) VALUES (1, 'u1')")
	for range 10 {
		c.exec("INSERT INTO app.busy SELECT g, repeat('x', 200) FROM generate_series(1, 10000) g")
		c.exec("BEGIN; INSERT INTO app.busy SELECT g, repeat('x', 200) FROM generate_series(1, 10000) g; ROLLBACK")
	}
	c.exec("INSERT INTO app.item (id, owner) VALUES (2, 'u2')")
	bytes := c.value("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn)::bigint FROM pg_replication_slots")
	c.start()
	c.equal()
	c.poll("statistics of decoding", "SELECT coalesce(sum(total_txns), 0) > 0 FROM pg_stat_replication_slots", "true")
	t.Logf("backlog of %s octets", bytes)
	// Each transaction went through the decoder at most twice: once per session that started on the way.
	if got := c.value("SELECT sum(total_txns) <= 60 FROM pg_stat_replication_slots"); got != "true" {
		t.Errorf("%s transactions were decoded", c.value("SELECT sum(total_txns) FROM pg_stat_replication_slots"))
	}
}

// Savepoints: what was rolled back never happened; many of them take time in proportion.
func TestSavepoints(t *testing.T) {
	t.Parallel()
	c := streamingCore(t, pgtest.Config{Settings: []string{"logical_decoding_work_mem = 64kB"}})
	c.exec(`BEGIN; SAVEPOINT a; INSERT INTO app.item (id, owner) VALUES (1, 'u1'); ROLLBACK TO a; INSERT INTO app.item (id, owner) VALUES (2, 'u1'); COMMIT`)
	c.exec(`BEGIN; INSERT INTO app.item (id, owner) VALUES (3, 'u1'); SAVEPOINT a; UPDATE app.item SET owner = 'no' WHERE id = 3; SAVEPOINT b; DELETE FROM app.item WHERE id = 3;
		ROLLBACK TO a; UPDATE app.item SET n = 5 WHERE id = 3; RELEASE a; COMMIT`)
	// Large enough to be streamed before its end, with most of it rolled back.
	c.exec(`DO $$ BEGIN
	  FOR i IN 1..3000 LOOP
	    BEGIN
	      INSERT INTO app.item (id, owner, big) VALUES (1000 + i, 'u' || i % 5, repeat('x', 100));
	      IF i % 3 <> 0 THEN RAISE EXCEPTION 'no'; END IF;
	    EXCEPTION WHEN raise_exception THEN
	    END;
	  END LOOP;
	END $$`)
	c.exec("BEGIN; INSERT INTO app.item (id, owner, big) SELECT g, 'gone', repeat('x', 100) FROM generate_series(50000, 53000) g; ROLLBACK")
	c.equal()
	c.want("SELECT count(*) FROM synchro.scope_entry WHERE state <> 'x'", "1002")
	c.want("SELECT count(*) FROM synchro.scope WHERE scope_id IN ('user:no', 'user:gone')", "0")

	subtransactions := func(from, n int) time.Duration {
		c.exec(fmt.Sprintf(`DO $$ BEGIN
		  FOR i IN 1..%d LOOP
		    BEGIN
		      INSERT INTO app.item (id, owner) VALUES (%d + i, 'many');
		    EXCEPTION WHEN division_by_zero THEN
		    END;
		  END LOOP;
		END $$`, n, from))
		start := time.Now()
		c.materialized()
		return time.Since(start)
	}
	few, many := subtransactions(100_000, 2_000), subtransactions(200_000, 20_000)
	if many > 60*few+5*time.Second {
		t.Errorf("2000 subtransactions took %s, 20000 took %s", few, many)
	}
	c.equal()
}

// Messages and origins of others in the stream, and forgeries of our own messages by a login without any privilege.
func TestForeignMessagesAreIgnored(t *testing.T) {
	t.Parallel()
	c := streamingCore(t, pgtest.Config{})
	c.exec("CREATE ROLE nobody LOGIN")
	nobody := c.Connect(t, "nobody", "")
	c.exec("INSERT INTO app.item (id, owner) VALUES (1, 'u1')")
	c.equal()
	generation := c.value("SELECT registry_generation FROM synchro.progress")
	for _, kind := range []string{"F", "A", "P", "M", "Z", ""} {
		for _, transactional := range []bool{true, false} {
			for _, size := range []int{0, 1, 16, 17, 40, 200, 3000} {
				content := append([]byte(kind), []byte(strings.Repeat("\x00\x07\xff", size))...)
				if _, err := nobody.Exec(context.Background(), "SELECT pg_logical_emit_message($1, 'synchro', $2::bytea)", transactional, content); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	// A genuine message again, byte for byte, from the WAL of a slot of our own: its transaction is another one.
	c.exec("SELECT pg_create_logical_replication_slot('spy', 'pgoutput')")
	c.exec("INSERT INTO app.item (id, owner) VALUES (2, 'u1')")
	var content []byte
	if err := c.db.QueryRow(context.Background(), `SELECT substr(data, 1 + 1 + 1 + 8 + 8 + 4) FROM pg_logical_slot_get_binary_changes('spy', NULL, NULL,
		'proto_version', '1', 'publication_names', 'synchro', 'messages', 'true') WHERE get_byte(data, 0) = ascii('M') LIMIT 1`).Scan(&content); err != nil || len(content) < 50 {
		t.Fatalf("%d octets, %v", len(content), err)
	}
	c.exec("SELECT pg_drop_replication_slot('spy')")
	if _, err := nobody.Exec(context.Background(), "SELECT pg_logical_emit_message(true, 'synchro', $1::bytea)", content); err != nil {
		t.Fatal(err)
	}
	if _, err := nobody.Exec(context.Background(), "SELECT pg_logical_emit_message(true, 'other', 'x'), pg_logical_emit_message(false, 'synchro2', 'x')"); err != nil {
		t.Fatal(err)
	}
	// A forgery inside a transaction that also changes a row.
	c.exec("BEGIN; INSERT INTO app.item (id, owner) VALUES (3, 'u1'); SELECT pg_logical_emit_message(true, 'synchro', 'Fgarbage'); COMMIT")
	c.exec("CREATE TYPE app.mood AS ENUM ('a'); CREATE TABLE app.moody (m app.mood); INSERT INTO app.moody VALUES ('a')")
	c.exec("SELECT pg_replication_origin_create('elsewhere')")
	c.exec(`SELECT pg_replication_origin_session_setup('elsewhere');
		BEGIN; SELECT pg_replication_origin_xact_setup('0/1', now()); INSERT INTO app.item (id, owner) VALUES (4, 'u1'); COMMIT; SELECT pg_replication_origin_session_reset()`)
	c.equal()
	c.want("SELECT registry_generation FROM synchro.progress", generation)
	c.want("SELECT ignored_messages FROM synchro.progress", "86") // 84, the repeated one, and the one beside a row
	c.want("SELECT count(*) FROM synchro.quarantine", "0")
}

// One row many times in a transaction, deleted and inserted again, in and out of scopes: its last state counts, once.
func TestManyChangesOfOneRow(t *testing.T) {
	t.Parallel()
	c := streamingCore(t, pgtest.Config{})
	c.exec("INSERT INTO app.item (id, owner) VALUES (1, 'u1')")
	c.exec("DO $$ BEGIN FOR i IN 1..1000 LOOP UPDATE app.item SET n = i, owner = 'u' || i % 3 WHERE id = 1; END LOOP; END $$")
	c.exec(`BEGIN; DELETE FROM app.item WHERE id = 1; INSERT INTO app.item (id, owner) VALUES (1, 'u1'); DELETE FROM app.item WHERE id = 1; INSERT INTO app.item (id, owner, n) VALUES (1, 'u2', 7); COMMIT`)
	c.exec("BEGIN; INSERT INTO app.item (id, owner) VALUES (2, 'u1'); DELETE FROM app.item WHERE id = 2; COMMIT")
	c.exec("INSERT INTO app.item (id, owner, shared) VALUES (1, 'u3', true), (3, 'u3', true) ON CONFLICT (id) DO UPDATE SET owner = excluded.owner, shared = true")
	c.exec("INSERT INTO app.item (id, owner) VALUES (1, 'u9') ON CONFLICT DO NOTHING; UPDATE app.item SET n = 1 WHERE id = 99; MERGE INTO app.item i USING (VALUES (3)) v (id) ON i.id = v.id WHEN MATCHED THEN UPDATE SET n = 8")
	c.exec(`COPY app.item (id, owner) FROM PROGRAM 'echo 77,u7' (FORMAT csv)`)
	c.equal()
	c.want("SELECT count(*) FROM synchro.scope_entry WHERE state <> 'x'", "5")
}
