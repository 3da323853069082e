package systest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"synchro/internal/pgtest"
)

// settle is how long anything may take that normally takes a second or two.
const settle = 30 * time.Second

// hosts are the values of synchro.core_host.
var hosts = []string{"process", "in_process"}

// workerStatus is synchro._worker_status(); NULLs are zero values.
type workerStatus struct {
	PID, CorePID int
	Host, State  string
	LastError    string
	Restarts     int64
}

// queryStatus reads the worker's status; ok is false when there is none to read.
func queryStatus(conn *pgx.Conn) (st workerStatus, ok bool) {
	err := conn.QueryRow(context.Background(), `SELECT coalesce(pid, 0), coalesce(core_pid, 0), host, state,
		coalesce(last_error, ''), restarts FROM synchro._worker_status()`).
		Scan(&st.PID, &st.CorePID, &st.Host, &st.State, &st.LastError, &st.Restarts)
	return st, err == nil
}

// awaitStatus polls until the status is as wanted.
func awaitStatus(t testing.TB, c *pgtest.Cluster, what string, wanted func(workerStatus) bool) workerStatus {
	t.Helper()
	var last workerStatus
	var conn *pgx.Conn
	err := pgtest.WaitFor(context.Background(), settle, what, func() (ok bool, err error) {
		if conn == nil || conn.IsClosed() {
			if conn, err = c.Conn(context.Background(), "", ""); err != nil {
				conn = nil
				return false, nil // the server is on its way
			}
		}
		last, ok = queryStatus(conn)
		return ok && wanted(last), nil
	})
	if conn != nil {
		_ = conn.Close(context.Background())
	}
	if err != nil {
		t.Fatalf("%v; last status: %+v", err, last)
	}
	return last
}

// awaitWorking polls until the core works.
func awaitWorking(t testing.TB, c *pgtest.Cluster) workerStatus {
	t.Helper()
	return awaitStatus(t, c, "working core", func(st workerStatus) bool { return st.State == "streaming" && st.CorePID != 0 })
}

// awaitOther polls until a core other than the given one works.
func awaitOther(t testing.TB, c *pgtest.Cluster, before workerStatus) workerStatus {
	t.Helper()
	return awaitStatus(t, c, "working new core", func(st workerStatus) bool {
		return st.State == "streaming" && st.CorePID != 0 && st.CorePID != before.CorePID
	})
}

// awaitLog polls until the server log has a text.
func awaitLog(t testing.TB, c *pgtest.Cluster, text string) {
	t.Helper()
	pgtest.Poll(t, settle, fmt.Sprintf("log line with %q", text), func() bool { return strings.Contains(c.Logs(), text) })
}

// startHost starts a cluster with a working core in the given host.
func startHost(t testing.TB, host string, settings ...string) *pgtest.Cluster {
	t.Helper()
	c := pgtest.StartWithExtension(t, pgtest.Config{Settings: append([]string{"synchro.core_host = " + host}, settings...)})
	awaitWorking(t, c)
	return c
}

// eachHost runs a test against both hosts.
func eachHost(t *testing.T, test func(t *testing.T, c *pgtest.Cluster)) {
	t.Parallel()
	for _, host := range hosts {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			test(t, startHost(t, host))
		})
	}
}

// reconfigure changes settings and reloads.
func reconfigure(t testing.TB, c *pgtest.Cluster, lines ...string) {
	t.Helper()
	if err := errors.Join(c.Configure(lines...), c.Reload()); err != nil {
		t.Fatal(err)
	}
}

// mustExec runs SQL as the superuser.
func mustExec(t testing.TB, c *pgtest.Cluster, sql string) {
	t.Helper()
	if err := c.Exec(context.Background(), sql); err != nil {
		t.Fatal(err)
	}
}

// workingBackend connects and returns a check that this very session still works: nothing touched the other backends.
func workingBackend(t testing.TB, c *pgtest.Cluster) (check func()) {
	t.Helper()
	conn := c.Connect(t, "", "")
	if _, err := conn.Exec(context.Background(), "CREATE TEMP TABLE untouched AS SELECT 1 AS n"); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		var n int
		if err := conn.QueryRow(context.Background(), "SELECT n FROM untouched").Scan(&n); err != nil || n != 1 {
			t.Errorf("another backend was touched: %d, %v", n, err)
		}
	}
}

// procStatus reads a field of /proc/<pid>/status.
func procStatus(t testing.TB, pid int, field string) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	t.Fatalf("/proc/%d/status has no %s", pid, field)
	return ""
}
