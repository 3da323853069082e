package systest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"synchro/internal/pgtest"
)

// keptRows is a server without a worker, whose materialized state a test writes itself, committed.
type keptRows struct {
	*pgtest.Cluster
	t *testing.T
}

func startKeptRows(t *testing.T, settings ...string) *keptRows {
	c := pgtest.Start(t, pgtest.Config{NoWorker: true, Settings: append([]string{"synchro.digest_memory = 1", "synchro.verify_digests = off"}, settings...)})
	k := &keptRows{c, t}
	repo, err := pgtest.RepoDir()
	k.must(err)
	fixture, err := os.ReadFile(filepath.Join(repo, "test/regress/fixtures/endpoints.sql"))
	k.must(err)
	sql, _, _ := strings.Cut(string(fixture), "\\pset")
	k.must(c.CreateExtension(context.Background()))
	k.exec("BEGIN;" + sql + "COMMIT")
	return k
}

func (k *keptRows) must(err error) {
	k.t.Helper()
	if err != nil {
		k.t.Fatal(err)
	}
}

func (k *keptRows) conn() *pgx.Conn {
	k.t.Helper()
	conn, err := k.Conn(context.Background(), "postgres", pgtest.Database)
	k.must(err)
	k.t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func (k *keptRows) exec(sql string) {
	k.t.Helper()
	k.must(k.Exec(context.Background(), sql))
}

// digests are the cached digest of a scope and the one of its entries, in the snapshot of one connection.
func digests(conn *pgx.Conn, scope string) (cached, entries string, err error) {
	err = conn.QueryRow(context.Background(), `SELECT c.digest, e.digest FROM synchro.progress p, synchro.scope s
		CROSS JOIN LATERAL synchro._scope_digest(s.scope_no, p.schema_version, s.scope_id) e
		CROSS JOIN LATERAL synchro._cached_digest(s.scope_no, p.schema_version, s.scope_id, s.high_lsn) c WHERE s.scope_id = $1`, scope).Scan(&cached, &entries)
	return cached, entries, err
}

// equal compares the two in a snapshot of its own.
func (k *keptRows) equal(conn *pgx.Conn, scope, what string) {
	k.t.Helper()
	cached, entries, err := digests(conn, scope)
	k.must(err)
	if cached != entries {
		k.t.Errorf("%s: the cached digest differs from that of the entries", what)
	}
}

// forget empties the cache of digests, so that the next one is computed from kept rows where they are good.
func (k *keptRows) forget() { k.exec("DELETE FROM synchro.scope_digest_cache") }

func TestKeptRowsFollowTheirScope(t *testing.T) {
	k := startKeptRows(t)
	conn := k.conn()
	note := func(n int, value, scopes string) string {
		return fmt.Sprintf("SELECT ep.note(%d, '%s', '%s');", n, value, scopes)
	}
	item := func(n int, value, scopes string) string {
		return fmt.Sprintf("SELECT ep.item(%d, '%s', '%s');", n, value, scopes)
	}

	t.Run("every kind of change", func(t *testing.T) {
		for i, sql := range []string{note(5, "a", "{f,g}"), item(-3, "1", "{f}"), note(1, "b", "{f}"), note(9, "c", "{f}"), item(7, "2", "{f}"), note(5, "d", "{f}"),
			note(5, "e", "{g}"), note(5, "f", "{f,g}"), "SELECT ep.note(1, 'g', '{f}', 's');", "SELECT ep.item(-3, NULL, '{}', 'd');", item(-3, "3", "{f}"),
			note(1, "h", "{f}") + note(2, "i", "{f}") + note(2, "j", "{g}") + "SELECT ep.note(9, NULL, '{}', 'd');", "SELECT ep.note(1, NULL, '{}', 'd');"} {
			k.exec(sql)
			k.equal(conn, "f", fmt.Sprint("after change ", i))
		}
	})
	t.Run("they are used", func(t *testing.T) {
		k.exec(note(11, "a", "{u}") + note(12, "a", "{u}"))
		k.equal(conn, "u", "before")
		k.exec(`UPDATE synchro.scope_entry e SET row_digest = sha256('x') FROM synchro.scope s WHERE s.scope_no = e.scope_no AND s.scope_id = 'u';` + note(13, "b", "{u}"))
		if cached, entries, err := digests(conn, "u"); err != nil || cached == entries {
			t.Errorf("the entries were read: error %v", err)
		}
	})
	t.Run("an older snapshot", func(t *testing.T) {
		k.exec(note(21, "a", "{o}"))
		k.equal(conn, "o", "before")
		old := k.conn()
		_, err := old.Exec(context.Background(), "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM synchro.scope")
		k.must(err)
		k.exec(note(22, "b", "{o}"))
		k.equal(conn, "o", "the newer snapshot")
		k.equal(old, "o", "the older snapshot")
		_, err = old.Exec(context.Background(), "COMMIT")
		k.must(err)
		k.forget()
		k.exec(note(21, "c", "{o}"))
		k.equal(conn, "o", "after the older snapshot")
	})
	t.Run("what is rolled back", func(t *testing.T) {
		k.exec(note(31, "a", "{r}"))
		k.equal(conn, "r", "before")
		own := k.conn()
		_, err := own.Exec(context.Background(), "BEGIN;"+note(32, "never", "{r}"))
		k.must(err)
		k.equal(own, "r", "in the transaction")
		_, err = own.Exec(context.Background(), "ROLLBACK")
		k.must(err)
		k.exec(note(33, "b", "{r}")) // at the same position
		k.equal(conn, "r", "afterwards")
	})
	t.Run("compaction", func(t *testing.T) {
		k.exec(note(41, "a", "{c}") + note(42, "a", "{c}"))
		k.equal(conn, "c", "before")
		k.exec(note(41, "b", "{}"))
		k.exec("SELECT synchro._compact_scopes(0, 1000)")
		k.exec(note(43, "c", "{c}"))
		k.equal(conn, "c", "a row left and its entry is gone")
		k.exec(note(42, "d", "{c}"))
		k.equal(conn, "c", "afterwards")
	})
	for _, generation := range []string{"membership_generation", "retention_generation"} {
		t.Run("another "+generation, func(t *testing.T) {
			scope := generation[:1]
			k.exec(note(51, "a", "{"+scope+"}") + note(52, "a", "{"+scope+"}"))
			k.equal(conn, scope, "before")
			k.exec(fmt.Sprintf(`BEGIN; DELETE FROM synchro.scope_entry e USING synchro.scope s WHERE s.scope_no = e.scope_no AND s.scope_id = '%s' AND e.key = synchro._key_bytes('string', '00000000-0000-4000-8000-000000000051');
				UPDATE synchro.scope SET %s = %s + 1 WHERE scope_id = '%s'; COMMIT`, scope, generation, generation, scope))
			k.forget()
			k.equal(conn, scope, "rows went without effects")
		})
	}
	t.Run("another stream", func(t *testing.T) {
		k.exec(note(61, "a", "{s}") + note(62, "a", "{s}"))
		k.equal(conn, "s", "before")
		k.exec(`BEGIN; DELETE FROM synchro.scope_entry e USING synchro.scope s WHERE s.scope_no = e.scope_no AND s.scope_id = 's' AND e.key = synchro._key_bytes('string', '00000000-0000-4000-8000-000000000061');
			UPDATE synchro.progress SET stream_generation = stream_generation + 1; COMMIT`)
		k.forget()
		k.equal(conn, "s", "rows went without effects")
	})
	t.Run("another manifest", func(t *testing.T) {
		k.exec(note(71, "a", "{m}") + item(72, "5", "{m}"))
		k.equal(conn, "m", "before")
		k.exec("SELECT ep.publish(9002, 9001, 'class_3', '{8000001}')")
		k.equal(conn, "m", "a table went")
		k.exec(note(73, "b", "{m}"))
		k.equal(conn, "m", "a change under the new manifest")
		k.exec("SELECT ep.publish(9003, 9002, 'class_2', '{8000001,8000002}')" + ";" + note(71, "c", "{m}"))
		k.equal(conn, "m", "a table came")
	})
	t.Run("too little memory", func(t *testing.T) {
		k.exec(`SELECT ep.note(1000, 'x', ARRAY(SELECT 'e' || n FROM generate_series(1, 40) n))`)
		k.exec(`INSERT INTO synchro.scope_entry SELECT e.scope_no, e.commit_lsn, n, e.digest_schema, e.rel_no, n, 'l', synchro._key_bytes('string', format('00000000-0000-4000-8000-%s', lpad(n::text, 12, '0'))), 'v', sha256(n::text::bytea)
			FROM synchro.scope_entry e JOIN synchro.scope s USING (scope_no), generate_series(1001, 1000 + CASE s.scope_id WHEN 'e40' THEN 5000 ELSE 700 END) n WHERE s.scope_id LIKE 'e%'`)
		for round := range 3 {
			for n := range 40 {
				k.equal(conn, fmt.Sprint("e", n+1), fmt.Sprintf("round %d, scope %d", round, n+1))
			}
			k.exec(fmt.Sprintf(`SELECT ep.note(1000, 'y%d', ARRAY(SELECT 'e' || n FROM generate_series(1, 40) n))`, round))
		}
	})
	t.Run("many rows", func(t *testing.T) { // the hash goes on where something has changed
		many := make([]string, 300)
		for n := range many {
			many[n] = note(2000+10*n, "a", "{l}")
		}
		k.exec(strings.Join(many, ""))
		k.equal(conn, "l", "before")
		gone := "SELECT ep.note(%d, NULL, '{}', 'd');"
		for _, sql := range []string{note(2000, "b", "{l}"), note(4990, "c", "{l}"), note(4000, "d", "{l}") + note(4500, "d", "{l}"), note(4010, "e", "{l}"),
			note(3500, "f", "{l}"), note(4500, "g", "{l}"), note(4505, "h", "{l}"), fmt.Sprintf(gone, 4600), note(4990, "i", "{l}"),
			fmt.Sprintf(gone, 4000) + note(4705, "j", "{l}"), fmt.Sprintf(gone, 4990) + note(2005, "k", "{l}"), note(4980, "l", "{l}"), item(1, "7", "{l}"), note(4980, "n", "{l}")} {
			k.exec(sql)
			k.equal(conn, "l", sql)
		}
	})
	t.Run("a crash", func(t *testing.T) {
		k.exec(note(81, "a", "{k}"))
		k.equal(conn, "k", "before")
		k.must(k.Restart(context.Background(), pgtest.Immediate))
		k.exec(note(82, "b", "{k}"))
		k.equal(k.conn(), "k", "after the restart")
	})
}

func TestKeptRowsAreVerified(t *testing.T) {
	k := startKeptRows(t, "synchro.verify_digests = on")
	conn := k.conn()
	k.exec("SELECT ep.note(1, 'a', '{v}'), ep.note(2, 'a', '{v}')")
	k.equal(conn, "v", "before")
	k.exec("UPDATE synchro.scope_entry SET row_digest = sha256('x'); SELECT ep.note(3, 'b', '{v}')")
	var refused *pgconn.PgError
	if _, _, err := digests(conn, "v"); !errors.As(err, &refused) || refused.Code != "SY011" {
		t.Errorf("entries that were changed without an effect are not noticed: %v", err)
	}
}
