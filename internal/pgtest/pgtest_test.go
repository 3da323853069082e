package pgtest

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestServerAcceptsEveryRoleOnSocketAndLoopback(t *testing.T) {
	c := Start(t, Config{NoWorker: true})
	ctx := context.Background()
	if err := c.Exec(ctx, "CREATE ROLE visitor LOGIN"); err != nil {
		t.Fatal(err)
	}
	for _, dsn := range []string{c.DSN("visitor", ""), c.TCPDSN("visitor", "")} {
		out, err := exec.Command(c.Installation().Bin("psql"), "-XAt", dsn, "-c", "SELECT current_user, current_database()").CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != "visitor|"+Database {
			t.Errorf("psql: %v: %s", err, out)
		}
	}
}

func TestDataSurvivesEveryStopMode(t *testing.T) {
	c := Start(t, Config{NoWorker: true, Fsync: true})
	ctx := context.Background()
	if err := c.Exec(ctx, "CREATE TABLE kept AS SELECT 0 AS restarts"); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []StopMode{Smart, Fast, Immediate} {
		if err := c.Exec(ctx, "UPDATE kept SET restarts = restarts + 1"); err != nil {
			t.Fatal(err)
		}
		if err := c.Restart(ctx, mode); err != nil {
			t.Fatal(err)
		}
	}
	var n int
	if err := c.Connect(t, "", "").QueryRow(ctx, "SELECT restarts FROM kept").Scan(&n); err != nil || n != 3 {
		t.Fatalf("restarts = %d, %v", n, err)
	}
}

func TestServerStartsAgainAfterKilledPostmaster(t *testing.T) {
	c := Start(t, Config{NoWorker: true, Fsync: true})
	if err := c.Kill(c.PID()); err != nil {
		t.Fatal(err)
	}
	Poll(t, 10*time.Second, "end of postmaster", func() bool { return !c.Running() })
	if err := c.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func TestSignalRefusesForeignProcesses(t *testing.T) {
	c := Start(t, Config{NoWorker: true})
	for _, pid := range []int{0, -1, os.Getpid(), os.Getppid()} {
		if err := c.Signal(pid, syscall.Signal(0)); err == nil {
			t.Errorf("process %d taken for one of the cluster", pid)
		}
	}
}

func TestSettingsTakeEffectOnReload(t *testing.T) {
	c := Start(t, Config{NoWorker: true, Settings: []string{"work_mem = '5MB'"}})
	if err := c.Configure("work_mem = '7MB'"); err != nil {
		t.Fatal(err)
	}
	if err := c.Reload(); err != nil {
		t.Fatal(err)
	}
	Poll(t, 10*time.Second, "new setting", func() bool {
		var v string
		conn := c.Connect(t, "", "")
		return conn.QueryRow(context.Background(), "SHOW work_mem").Scan(&v) == nil && v == "7MB"
	})
}

// TestServerEndsWithItsStarter runs this test binary as a child that starts a server and is then killed.
func TestServerEndsWithItsStarter(t *testing.T) {
	if os.Getenv("PGTEST_CHILD") != "" {
		c, err := New(context.Background(), Config{NoWorker: true})
		if err == nil {
			err = c.Start(context.Background())
		}
		if err != nil {
			t.Fatal(err)
		}
		os.Stdout.WriteString("dir " + c.Dir() + " pid " + strconv.Itoa(c.PID()) + "\n")
		select {}
	}
	child := exec.Command(os.Args[0], "-test.run=^TestServerEndsWithItsStarter$")
	child.Env = append(os.Environ(), "PGTEST_CHILD=1")
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 512)
	n, err := out.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(buf[:n]))
	if len(fields) < 4 {
		t.Fatalf("child said %q", buf[:n])
	}
	t.Cleanup(func() { os.RemoveAll(fields[1]) })
	pid, err := strconv.Atoi(fields[3])
	if err != nil || syscall.Kill(pid, 0) != nil {
		t.Fatalf("no server %q: %v", fields[3], err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	Poll(t, 15*time.Second, "end of orphaned server", func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH })
}
