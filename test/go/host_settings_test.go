package systest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"synchro/internal/pgtest"
)

// awaitState polls until the worker is in a state.
func awaitState(t testing.TB, c *pgtest.Cluster, state string) workerStatus {
	t.Helper()
	return awaitStatus(t, c, "worker in state "+state, func(st workerStatus) bool { return st.State == state })
}

func TestHostRefusesSenselessSettings(t *testing.T) {
	wrong := []string{
		"synchro.batch_max_rows = 0",
		"synchro.max_wal_lag_bytes = -1",
		"synchro.max_row_bytes = ''",
		"synchro.backfill_batch_size = 0",
		"synchro.backfill_batch_size = 1001",
		"synchro.worker_memory_limit = many",
		"synchro.core_host = elsewhere",
		"synchro.compact_schedule = sometimes",
		"synchro.publication_name = ''",
		"synchro.replication_slot = 'No-Slot'",
		"synchro.max_wal_lag = 5",
	}
	t.Parallel()
	// One line at a time, in a file of its own.
	extra := filepath.Join(t.TempDir(), "extra.conf")
	write := func(line string) {
		t.Helper()
		if err := errors.Join(os.WriteFile(extra, []byte(line+"\n"), 0o644), makeReadable(extra)); err != nil {
			t.Fatal(err)
		}
	}
	write("")
	c := pgtest.StartWithExtension(t, pgtest.Config{Settings: []string{"include = '" + extra + "'"}})
	for i, line := range wrong {
		name, _, _ := strings.Cut(line, " =")
		t.Run(name, func(t *testing.T) {
			write(line)
			if i%2 == 0 { // at start and at reload alike
				if err := c.Restart(t.Context(), pgtest.Fast); err != nil {
					t.Fatal(err)
				}
			} else if err := c.Reload(); err != nil {
				t.Fatal(err)
			}
			st := awaitStatus(t, c, "refusal", func(st workerStatus) bool {
				return st.State == "misconfigured" && strings.Contains(st.LastError, name)
			})
			if st.CorePID != 0 {
				t.Errorf("a core runs: %+v", st)
			}
		})
	}
	write("")
	if err := c.Reload(); err != nil {
		t.Fatal(err)
	}
	awaitWorking(t, c)
	if !strings.Contains(c.Logs(), "HINT:  Set it to a value from 1 to 1000, or remove it to use the default, and reload.") {
		t.Error("no hint in the log")
	}
}

// makeReadable lets the server's user reach a file in a test's own directory.
func makeReadable(path string) error {
	dir := filepath.Dir(path)
	return errors.Join(os.Chmod(path, 0o644), os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755))
}

func TestHostComplainsOnce(t *testing.T) {
	t.Parallel()
	c := pgtest.StartWithExtension(t, pgtest.Config{Settings: []string{"synchro.batch_max_bytes = 0"}})
	awaitState(t, c, "misconfigured")
	// Two reloads of other things repeat it once each, time does not.
	for range 2 {
		reconfigure(t, c)
		awaitState(t, c, "misconfigured")
	}
	reconfigure(t, c, "synchro.batch_max_bytes = '1MB'")
	awaitWorking(t, c)
	if n := strings.Count(c.Logs(), "synchro.batch_max_bytes is out of range"); n < 1 || n > 3 {
		t.Errorf("%d complaints", n)
	}
}

func TestHostReloadOfLimitsKeepsCore(t *testing.T) {
	eachHost(t, func(t *testing.T, c *pgtest.Cluster) {
		before := awaitWorking(t, c)
		reconfigure(t, c, "synchro.batch_max_rows = 77", "synchro.worker_memory_limit = '300MB'")
		// The refusal of a third change proves that the worker has seen the first ones; a core that they had restarted counts.
		reconfigure(t, c, "synchro.publication_name = ''")
		if st := awaitState(t, c, "misconfigured"); st.Restarts != before.Restarts {
			t.Errorf("the core restarted: %+v, then %+v", before, st)
		}
	})
}

func TestHostReloadOfPublicationRestartsCore(t *testing.T) {
	eachHost(t, func(t *testing.T, c *pgtest.Cluster) {
		before := awaitWorking(t, c)
		reconfigure(t, c, "synchro.publication_name = 'other'")
		awaitStatus(t, c, "new core", func(st workerStatus) bool { return st.Restarts > before.Restarts })
	})
}

func TestHostChangesAtReload(t *testing.T) {
	t.Parallel()
	c := startHost(t, "process")
	for _, host := range []string{"in_process", "process"} {
		reconfigure(t, c, "synchro.core_host = "+host)
		awaitStatus(t, c, "core in host "+host, func(st workerStatus) bool {
			return st.State == "streaming" && st.Host == host && (st.PID == st.CorePID) == (host == "in_process")
		})
	}
}

func TestHostServesEachListedDatabase(t *testing.T) {
	t.Parallel()
	c := pgtest.Start(t, pgtest.Config{Database: `postgres, app`})
	mustExec(t, c, "CREATE EXTENSION synchro")
	conn := c.Connect(t, "", "postgres")
	if _, err := conn.Exec(t.Context(), "CREATE EXTENSION synchro"); err != nil {
		t.Fatal(err)
	}
	app := awaitWorking(t, c)
	pgtest.Poll(t, settle, "core of the other database", func() bool {
		st, ok := queryStatus(conn)
		return ok && st.State == "streaming" && st.CorePID != app.CorePID && st.PID != app.PID
	})
}

func TestHostSurvivesSenselessDatabaseList(t *testing.T) {
	t.Parallel()
	c := pgtest.StartWithExtension(t, pgtest.Config{Database: "app, app"})
	awaitLog(t, c, "synchro.database is no list of distinct database names")
	var n int
	if err := c.Connect(t, "", "").QueryRow(t.Context(), "SELECT count(*) FROM synchro._worker_status()").Scan(&n); err != nil || n != 0 {
		t.Errorf("%d workers, %v", n, err)
	}
}
