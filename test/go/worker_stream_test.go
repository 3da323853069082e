package systest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"synchro/internal/pgtest"
)

func TestChangesAreMaterialized(t *testing.T) {
	c := newCore(t, pgtest.Config{})
	c.start()
	c.streaming()
	c.exec("INSERT INTO app.item (id, owner) SELECT g, 'u' || g % 3 FROM generate_series(1, 50) g")
	c.register()
	c.exec("INSERT INTO app.item (id, owner, shared) SELECT g, 'u' || g % 3, g % 2 = 0 FROM generate_series(51, 100) g")
	c.equal()
	c.exec("UPDATE app.item SET owner = 'u4', n = n + 1 WHERE id % 5 = 0; DELETE FROM app.item WHERE id % 7 = 0; UPDATE app.item SET deleted_at = now() WHERE id = 1")
	c.equal()
}

// What was registered before the slot existed comes from the snapshot that the slot begins with.
func TestBootstrapTakesWhatIsThere(t *testing.T) {
	c := newCore(t, pgtest.Config{})
	c.register()
	c.exec("INSERT INTO app.item (id, owner, shared, big) SELECT g, 'u' || g % 3, g % 2 = 0, repeat('x', 3000) FROM generate_series(1, 2500) g")
	c.limits.BatchMaxRows = 1000
	c.start()
	c.streaming()
	c.exec("UPDATE app.item SET n = n + 1 WHERE id % 2 = 0")
	c.equal()
	c.want("SELECT count(*) FROM synchro.scope_entry e, synchro.progress p WHERE e.commit_lsn < p.start_lsn", "1250")
}

// A transaction of exactly as many changes as a batch holds, and its neighbours.
func TestTransactionsAroundTheBatchSize(t *testing.T) {
	c := newCore(t, pgtest.Config{})
	c.limits.BatchMaxRows = 100
	c.register()
	c.start()
	c.streaming()
	next := 0
	for _, n := range []int{99, 100, 101, 199, 200, 201, 300} {
		c.exec("INSERT INTO app.item (id, owner) SELECT g, 'u' || g % 3 FROM generate_series($1::int, $2::int) g", next+1, next+n)
		next += n
	}
	c.equal()
	c.want("SELECT count(*) FROM synchro.scope_entry", fmt.Sprint(next))
}

// Nothing of a rolled-back subtransaction is seen, however large the transaction and its subtransactions are.
func TestRolledBackSubtransactions(t *testing.T) {
	c := newCore(t, pgtest.Config{Settings: []string{"logical_decoding_work_mem = '64kB'"}})
	c.register()
	c.start()
	c.streaming()
	c.exec("BEGIN; SAVEPOINT a; INSERT INTO app.item (id, owner) VALUES (1, 'no'); ROLLBACK TO a; INSERT INTO app.item (id, owner) VALUES (2, 'yes'); COMMIT")
	c.exec(`BEGIN; INSERT INTO app.item (id, owner) SELECT g, 'u1' FROM generate_series(100, 999) g;
		SAVEPOINT a; INSERT INTO app.item (id, owner) SELECT g, 'no' FROM generate_series(1000, 1999) g; UPDATE app.item SET n = 5 WHERE id >= 500; ROLLBACK TO a;
		SAVEPOINT b; UPDATE app.item SET n = 7 WHERE id < 500; SAVEPOINT c; DELETE FROM app.item WHERE id < 200; ROLLBACK TO c; RELEASE b; COMMIT`)
	c.exec("DO $$ BEGIN FOR i IN 3000 .. 3999 LOOP BEGIN INSERT INTO app.item (id, owner) VALUES (i, 'u2'); IF i % 2 = 0 THEN RAISE division_by_zero; END IF; EXCEPTION WHEN division_by_zero THEN NULL; END; END LOOP; END $$")
	c.equal()
	c.want("SELECT count(*) FROM synchro.scope_entry e JOIN synchro.scope s USING (scope_no) WHERE s.scope_id = 'user:no'", "0")
}

// A row that changes many times in one transaction has one effect, with its last version.
func TestNetEffectOfATransaction(t *testing.T) {
	c := newCore(t, pgtest.Config{})
	c.register()
	c.start()
	c.streaming()
	c.exec("INSERT INTO app.item (id, owner) VALUES (1, 'u1'), (2, 'u1'), (3, 'u1')")
	c.exec(`BEGIN; DO $$ BEGIN FOR i IN 1 .. 1000 LOOP UPDATE app.item SET n = n + 1, owner = 'u' || i % 7 WHERE id = 1; END LOOP; END $$;
		DELETE FROM app.item WHERE id = 2; INSERT INTO app.item (id, owner) VALUES (2, 'again');
		INSERT INTO app.item (id, owner) VALUES (4, 'gone'); DELETE FROM app.item WHERE id = 4;
		WITH i AS (INSERT INTO app.item (id, owner) VALUES (5, 'cte') RETURNING id) UPDATE app.item SET n = 9 WHERE id = 3; COMMIT`)
	c.equal()
	c.want("SELECT string_agg(scope_id, ' ' ORDER BY scope_id) FROM synchro.scope", "user:again user:cte user:u1 user:u6")
	c.want("SELECT count(*) FROM synchro.scope_entry WHERE state = 'x'", "2") // rows 1 and 2 left u1; 4 was never anywhere
}

// A key that comes back takes up the entries of its earlier life.
func TestKeysComeBack(t *testing.T) {
	c := newCore(t, pgtest.Config{})
	c.register()
	c.start()
	c.streaming()
	for round := range 3 {
		c.exec("INSERT INTO app.item (id, owner, shared) SELECT g, 'u' || (g + $1) % 3, g % 2 = 0 FROM generate_series(1, 100) g", round)
		c.equal()
		c.exec("DELETE FROM app.item WHERE id % 4 <> 0")
		c.equal()
		c.exec("INSERT INTO app.item (id, owner) VALUES (1, 'u1'); DELETE FROM app.item WHERE id < 200")
	}
	c.equal()
	c.want("SELECT count(*) FROM synchro.quarantine", "0")
}

// An update that leaves a TOASTed value alone does not send it.
func TestUnchangedToastedValuesStay(t *testing.T) {
	c := newCore(t, pgtest.Config{})
	c.register()
	c.start()
	c.streaming()
	big := "(SELECT string_agg(md5(g::text), '') FROM generate_series(1, 320) g)"
	c.exec("INSERT INTO app.item (id, owner, big) VALUES (1, 'u1', " + big + "), (2, 'u1', " + big + ")")
	c.equal()
	c.exec("UPDATE app.item SET n = n + 1 WHERE id = 1")
	c.exec("BEGIN; UPDATE app.item SET n = 1, big = 'a' || big WHERE id = 2; UPDATE app.item SET n = 2 WHERE id = 2; UPDATE app.item SET owner = 'u2' WHERE id = 2; COMMIT")
	c.exec("BEGIN; INSERT INTO app.item (id, owner, big) VALUES (3, 'u1', " + big + "); UPDATE app.item SET n = 1 WHERE id = 3; COMMIT")
	c.exec("UPDATE app.item SET deleted_at = now() WHERE id = 1; UPDATE app.item SET big = NULL WHERE id = 3")
	c.equal()
}

// Settings of the database and the role have no influence on what is captured.
func TestSettingsOfDatabaseAndRoleHaveNoInfluence(t *testing.T) {
	c := newCore(t, pgtest.Config{})
	for _, what := range []string{"DATABASE app", "ROLE core_login"} {
		for _, set := range []string{"datestyle = 'SQL, DMY'", "timezone = 'Asia/Kathmandu'", "intervalstyle = 'sql_standard'", "extra_float_digits = 0",
			"bytea_output = 'escape'", "search_path = 'nowhere'", "statement_timeout = 1", "lock_timeout = 1", "default_transaction_read_only = on",
			"default_transaction_isolation = 'serializable'", "array_nulls = off", "xmloption = document", "enable_indexscan = off"} {
			c.exec("ALTER " + what + " SET " + set)
		}
	}
	c.exec(`CREATE TABLE app.kinds (id bigint PRIMARY KEY, d date, ts timestamptz, i interval, f float8, r real, b bytea, a text[], j jsonb, nu numeric, t time, u uuid)`)
	c.exec(`GRANT SELECT ON app.kinds TO synchro_owner, synchro_worker; SELECT synchro.synchro_prepare_projection_view('app.kinds', 'kinds', '{id}')`)
	c.exec(`CREATE FUNCTION app.kinds_scopes(p_row_key bigint) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
		BEGIN ATOMIC SELECT 'k' FROM synchro_projection.kinds k WHERE k.id = p_row_key; END;
		REVOKE EXECUTE ON FUNCTION app.kinds_scopes(bigint) FROM PUBLIC; GRANT EXECUTE ON FUNCTION app.kinds_scopes(bigint) TO synchro_worker`)
	c.exec(`SELECT synchro.synchro_register_table('app.kinds', 'app.kinds_scopes', p_push_policy => 'read_only', p_text_columns => '{i}')`)
	c.start()
	c.streaming()
	row := func(id int) string {
		return fmt.Sprintf(`INSERT INTO app.kinds VALUES (%d, '2026-12-31', '2026-02-03 04:05:06.789+00', '1 year 2 mons 3 days 04:05:06', 0.1::float8 + 0.2, 16777217,
			'\x00ff5c', '{a,NULL,"N ULL"}', '{"b":1.50,"a":[1,2]}', 1.2300, '12:34:56.7', '00000000-0000-0000-0000-00000000000a')`, id)
	}
	c.exec(row(1))
	c.materialized()
	p := c.value("SELECT 'synchro_data.r_' || rel_no FROM synchro.relation WHERE physical_relation = 'kinds'")
	columns := c.value("SELECT string_agg('c' || attnum, ', ' ORDER BY attnum) FROM synchro.captured_column c JOIN synchro.relation l USING (rel_no) WHERE l.physical_relation = 'kinds'")
	c.same("streamed kinds", "SELECT (p.*)::text FROM (SELECT "+columns+" FROM "+p+") p", "SELECT (k.*)::text FROM app.kinds k")
}

// Anybody can emit messages of our prefix: they are counted and change nothing.
func TestForgedMessagesAreIgnored(t *testing.T) {
	c := newCore(t, pgtest.Config{})
	c.register()
	c.start()
	c.streaming()
	c.exec("CREATE ROLE nobody LOGIN")
	nobody := c.Connect(t, "nobody", "")
	for _, message := range []string{`'\x46'`, `'\x46' || repeat('0', 200)::bytea`, `'\x41' || repeat('0', 32)::bytea`, `'\x50' || repeat('0', 32)::bytea`, `'\x7a'`, `''`} {
		if _, err := nobody.Exec(context.Background(), "SELECT pg_logical_emit_message(true, 'synchro', ("+message+")::bytea)"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := nobody.Exec(context.Background(), "SELECT pg_logical_emit_message(false, 'synchro', 'M'), pg_logical_emit_message(true, 'synchro2', 'F')"); err != nil {
		t.Fatal(err)
	}
	c.exec("INSERT INTO app.item (id, owner) VALUES (1, 'u1')")
	c.equal()
	c.want("SELECT ignored_messages FROM synchro.progress", "7")
}

// Origins, other messages and two-phase leftovers of the protocol are no reason to stop.
func TestOriginsAreNoReasonToStop(t *testing.T) {
	c := newCore(t, pgtest.Config{})
	c.register()
	c.start()
	c.streaming()
	c.exec("SELECT pg_replication_origin_create('elsewhere')")
	c.exec("SELECT pg_replication_origin_session_setup('elsewhere')")
	c.exec("INSERT INTO app.item (id, owner) VALUES (1, 'u1')")
	c.exec("SELECT pg_replication_origin_session_reset()")
	c.exec("SELECT pg_logical_emit_message(true, 'other', 'hello')")
	c.exec("SET session_replication_role = replica; INSERT INTO app.item (id, owner) VALUES (2, 'u1'); RESET session_replication_role")
	c.equal()
}

// randomWork runs n random transactions.
func randomWork(ctx context.Context, db *pgx.Conn, rng *rand.Rand, n int) error {
	for range n {
		tx, err := db.Begin(ctx)
		if err != nil {
			return err
		}
		for range 1 + rng.IntN(6) {
			id, savepoint := rng.IntN(60), rng.IntN(4) == 0
			var sql string
			switch rng.IntN(7) {
			case 0, 1:
				sql = fmt.Sprintf(`INSERT INTO app.item (id, owner, shared, big) VALUES (%d, 'u%d', %v, repeat('b', %d)) ON CONFLICT (id) DO UPDATE SET n = app.item.n + 1`,
					id, rng.IntN(4), rng.IntN(2) == 0, rng.IntN(2)*4000)
			case 2:
				sql = fmt.Sprintf("UPDATE app.item SET n = n + 1 WHERE id = %d", id)
			case 3:
				sql = fmt.Sprintf("UPDATE app.item SET owner = nullif('u%d', 'u0'), shared = NOT shared WHERE id BETWEEN %d AND %d", rng.IntN(4), id, id+3)
			case 4:
				sql = fmt.Sprintf("DELETE FROM app.item WHERE id = %d", id)
			case 5:
				sql = fmt.Sprintf("UPDATE app.item SET deleted_at = CASE WHEN deleted_at IS NULL THEN now() END WHERE id = %d", id)
			case 6:
				sql = fmt.Sprintf("UPDATE app.item SET big = md5(random()::text), at = clock_timestamp() WHERE id = %d", id)
			}
			if savepoint {
				sql = "SAVEPOINT s; " + sql + "; ROLLBACK TO s"
			}
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		end := tx.Commit
		if rng.IntN(10) == 0 {
			end = tx.Rollback
		}
		if err := end(ctx); err != nil {
			return err
		}
	}
	return nil
}

func TestRandomWorkEndsEqual(t *testing.T) {
	c := newCore(t, pgtest.Config{})
	c.register()
	c.start()
	c.streaming()
	for seed := range uint64(4) {
		if err := randomWork(t.Context(), c.db, rand.New(rand.NewPCG(seed, 7)), 150); err != nil {
			t.Fatal(err)
		}
		c.equal()
	}
}

// Writers that overlap, wait for each other and deadlock.
func TestConcurrentWritersEndEqual(t *testing.T) {
	c := newCore(t, pgtest.Config{Settings: []string{"deadlock_timeout = '20ms'", "logical_decoding_work_mem = '64kB'"}})
	c.register()
	c.start()
	c.streaming()
	var writers sync.WaitGroup
	for i := range 4 {
		conn := c.Connect(t, "", "")
		rng := rand.New(rand.NewPCG(uint64(i), 17))
		writers.Go(func() {
			for range 60 {
				_ = randomWork(context.Background(), conn, rng, 3) // a deadlock ends it early
				_, _ = conn.Exec(context.Background(), "ROLLBACK")
			}
		})
	}
	writers.Wait()
	c.equal()
	c.want("SELECT count(*) FROM synchro.quarantine", "0")
}

// A partitioned table is one table, whatever its partitions are called and however their columns are ordered.
func TestPartitionsAreOneTable(t *testing.T) {
	c := newCore(t, pgtest.Config{})
	c.exec(`CREATE TABLE app.part (id bigint PRIMARY KEY, owner text, n int DEFAULT 0, twice int GENERATED ALWAYS AS (n * 2) STORED) PARTITION BY RANGE (id);
		CREATE TABLE app.part_a PARTITION OF app.part FOR VALUES FROM (0) TO (100);
		CREATE TABLE app.part_b (n int DEFAULT 0, gone text, owner text, id bigint NOT NULL, twice int GENERATED ALWAYS AS (n * 2) STORED);
		ALTER TABLE app.part_b DROP COLUMN gone; ALTER TABLE app.part ATTACH PARTITION app.part_b FOR VALUES FROM (100) TO (200);
		GRANT SELECT ON app.part, app.part_a, app.part_b TO synchro_owner, synchro_worker;
		SELECT synchro.synchro_prepare_projection_view('app.part', 'part', '{id,owner}');
		CREATE FUNCTION app.part_scopes(p_row_key bigint) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
		BEGIN ATOMIC SELECT 'user:' || p.owner FROM synchro_projection.part p WHERE p.id = p_row_key AND p.owner IS NOT NULL; END;
		REVOKE EXECUTE ON FUNCTION app.part_scopes(bigint) FROM PUBLIC; GRANT EXECUTE ON FUNCTION app.part_scopes(bigint) TO synchro_worker;
		INSERT INTO app.part (id, owner) VALUES (1, 'u1'), (101, 'u1')`)
	c.exec("SELECT synchro.synchro_register_table('app.part', 'app.part_scopes', p_push_policy => 'read_only')")
	c.start()
	c.streaming()
	c.exec("INSERT INTO app.part (id, owner, n) SELECT g, 'u' || g % 3, g FROM generate_series(2, 180, 7) g")
	c.exec("UPDATE app.part SET n = n + 1, owner = 'u9' WHERE id % 2 = 0; DELETE FROM app.part_b WHERE id > 150; INSERT INTO app.part_b (id, owner) VALUES (199, 'u7')")
	c.materialized()
	p := c.value("SELECT 'synchro_data.r_' || rel_no FROM synchro.relation WHERE physical_relation = 'part'")
	c.same("partitioned projection", "SELECT c1, c2, c3, c4 FROM "+p, "TABLE app.part")
	c.same("partitioned entries", "SELECT s.scope_id COLLATE \"C\", e.key FROM synchro.scope_entry e JOIN synchro.scope s USING (scope_no) WHERE state = 'l'",
		"SELECT 'user:' || owner COLLATE \"C\", synchro._key_bytes('int64', id::text) FROM app.part")
}
