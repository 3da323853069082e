package systest

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"synchro/internal/pgtest"
)

// largeScope fills a scope with a million narrow rows, on the fixture of the SQL tests, and prepares a request for its first page. Staging needs none
// of the indexes that it does without.
const largeScope = `
DROP INDEX synchro.scope_entry_position, synchro.scope_entry_left;
INSERT INTO synchro.scope (scope_id, high_lsn) VALUES ('user:u', '0/100');
INSERT INTO synchro_data.r_8000002 SELECT g, g, 'v' || g, '3', '{}' FROM generate_series(1, 1000000) g;
INSERT INTO synchro.scope_entry (scope_no, commit_lsn, event_ordinal, digest_schema, rel_no, effect_ordinal, state, key, server_version, row_digest)
SELECT s.scope_no, '0/100', r.c1, 9001, 8000002, 0, 'l', synchro._key_bytes('int', r.c1::text), r.server_version, synchro._row_digest(8000002, 9001, r, r.server_version)
  FROM synchro_data.r_8000002 r, synchro.scope s;
UPDATE synchro.progress SET commit_lsn = '0/100';
SELECT ep.connect('u-1');
CREATE TABLE ep.request AS SELECT jsonb_build_object('client_id', 'u-1', 'client_generation', 1, 'schema', ep.current(), 'scope', 'user:u', 'rebuild_id', '00000000-0000-4000-8000-000000000001',
  'cursor', NULL, 'limit', 1000)::text AS body;`

// A scope of a million rows is staged in one pass, which reads each row once, by a backend that stays far below what it stages: what it
// may use to sort and to join (work_mem of _stage_scope, once each), its part of shared memory, and nothing for each row.
func TestMillionRowsAreStagedInBoundedMemory(t *testing.T) {
	t.Parallel()
	const limit = 192 << 20
	c := pgtest.StartWithExtension(t, pgtest.Config{NoWorker: true, Settings: []string{"shared_buffers = 16MB", "max_wal_size = 4GB", "autovacuum = off", "hash_mem_multiplier = 1"}})
	repo, err := pgtest.RepoDir()
	if err != nil {
		t.Fatal(err)
	}
	fixture, err := os.ReadFile(filepath.Join(repo, "test/regress/fixtures/endpoints.sql"))
	if err != nil {
		t.Fatal(err)
	}
	sql, _, found := strings.Cut(string(fixture), "\\pset") // what only psql understands comes last
	if !found {
		t.Fatal("the fixture is another one")
	}
	mustExec(t, c, "BEGIN ISOLATION LEVEL REPEATABLE READ;"+sql+largeScope+"COMMIT")
	mustExec(t, c, "ANALYZE synchro.scope_entry, synchro_data.r_8000002")

	conn := c.Connect(t, "", "")
	var body string
	if err := conn.QueryRow(t.Context(), "SELECT body FROM ep.request").Scan(&body); err != nil {
		t.Fatal(err)
	}
	var status, read, rows, octets int64
	err = pgx.BeginTxFunc(t.Context(), conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		if err := tx.QueryRow(context.Background(), "SELECT status FROM synchro.synchro_rebuild('u', $1)", body).Scan(&status); err != nil {
			return err
		}
		return tx.QueryRow(context.Background(), "SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_xact_all_tables WHERE relname = 'r_8000002'").Scan(&read)
	})
	if err != nil || status != 200 {
		t.Fatalf("rebuild: %d %v", status, err)
	}
	peak := peakMemory(t, conn)
	if err := conn.QueryRow(t.Context(), "SELECT sum(row_count), sum(octet_length(records)) FROM synchro.rebuild_chunk").Scan(&rows, &octets); err != nil {
		t.Fatal(err)
	}
	if rows != 1000000 || read != rows {
		t.Errorf("%d rows staged, %d read", rows, read)
	}
	if peak > limit || octets < limit*3/2 {
		t.Errorf("a backend of %d MB for %d MB of records", peak>>20, octets>>20)
	}
	// With another manifest the digest of every row is made anew.
	mustExec(t, c, "SELECT ep.publish(9002, 9001, 'class_2', '{8000001,8000002}')")
	conn = c.Connect(t, "", "")
	var same bool
	if err := conn.QueryRow(t.Context(), "SELECT d.cardinality = 1000000 FROM synchro.scope s, synchro._scope_digest(s.scope_no, 9002, s.scope_id) d").Scan(&same); err != nil || !same {
		t.Errorf("the digest under another manifest: %v %v", same, err)
	}
	if peak := peakMemory(t, conn); peak > limit/2 {
		t.Errorf("a backend of %d MB for a digest", peak>>20)
	}
}

// peakMemory is how much memory a connection's backend has had at most, its part of shared memory included.
func peakMemory(t testing.TB, conn *pgx.Conn) int64 {
	t.Helper()
	kb, err := strconv.ParseInt(strings.TrimSuffix(procStatus(t, int(conn.PgConn().PID()), "VmHWM"), " kB"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("peak of %d MB", kb>>10)
	return kb << 10
}
