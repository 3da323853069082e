package systest

import (
	"context"
	"syscall"
	"testing"
	"time"

	"synchro/internal/pgtest"
)

// restarts is how often the worker is ended in a row: each takes the second that the postmaster waits.
func restarts() int {
	if testing.Short() {
		return 5
	}
	return 100
}

func TestHostWorkerRestartsManyTimes(t *testing.T) {
	eachHost(t, func(t *testing.T, c *pgtest.Cluster) {
		untouched := workingBackend(t, c)
		conn := c.Connect(t, "", "")
		st := awaitWorking(t, c)
		for range restarts() {
			if _, err := conn.Exec(context.Background(), "SELECT pg_terminate_backend($1)", st.PID); err != nil {
				t.Fatal(err)
			}
			before := st
			pgtest.Poll(t, settle, "restarted worker", func() bool {
				now, ok := queryStatus(conn)
				st = now
				return ok && now.State == "streaming" && now.PID != before.PID && now.CorePID != before.CorePID
			})
		}
		untouched()
		if st.Restarts < int64(restarts()) {
			t.Errorf("%d restarts counted", st.Restarts)
		}
		pgtest.Poll(t, settle, "end of the sessions of earlier cores", func() bool { return coreSessions(t, c) <= 4 })
	})
}

// coreSessions counts the sessions of members of synchro_worker.
func coreSessions(t testing.TB, c *pgtest.Cluster) (n int) {
	t.Helper()
	conn, err := c.Conn(context.Background(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	err = conn.QueryRow(context.Background(), `SELECT count(*) FROM pg_stat_activity
		WHERE usename ~ '^synchro_worker_[0-9]+$'`).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestHostKilledCoreRestartsAlone(t *testing.T) {
	t.Parallel()
	c := startHost(t, "process")
	untouched := workingBackend(t, c)
	before := awaitWorking(t, c)
	if err := c.Kill(before.CorePID); err != nil {
		t.Fatal(err)
	}
	after := awaitOther(t, c, before)
	if after.PID != before.PID {
		t.Errorf("the worker restarted too: %+v, then %+v", before, after)
	}
	untouched()
	awaitLog(t, c, "core was terminated by signal 9")
}

func TestHostKilledWorkerComesBackAfterCrashRestart(t *testing.T) {
	eachHost(t, func(t *testing.T, c *pgtest.Cluster) {
		before := awaitWorking(t, c)
		if err := c.Kill(before.PID); err != nil {
			t.Fatal(err)
		}
		awaitOther(t, c, before)
		pgtest.Poll(t, settle, "end of the old core", func() bool { return syscall.Kill(before.CorePID, 0) != nil })
	})
}

func TestHostStopModes(t *testing.T) {
	modes := []struct {
		name  string
		mode  pgtest.StopMode
		limit time.Duration
	}{
		{"fast", pgtest.Fast, 5 * time.Second},
		{"smart", pgtest.Smart, 10 * time.Second},
		{"immediate", pgtest.Immediate, 5 * time.Second},
	}
	eachHost(t, func(t *testing.T, c *pgtest.Cluster) {
		for _, m := range modes {
			st := awaitWorking(t, c)
			begin := time.Now()
			if err := c.Stop(m.mode); err != nil {
				t.Fatalf("%s stop: %v", m.name, err)
			}
			took := time.Since(begin)
			t.Logf("%s stop: %v", m.name, took)
			if took > m.limit {
				t.Errorf("%s stop took %v", m.name, took)
			}
			pgtest.Poll(t, settle, "end of the core", func() bool { return syscall.Kill(st.CorePID, 0) != nil })
			if err := c.Start(context.Background()); err != nil {
				t.Fatalf("start after %s stop: %v", m.name, err)
			}
		}
		awaitWorking(t, c)
	})
}
