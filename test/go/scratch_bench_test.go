package systest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"synchro/internal/pgtest"
)

func (c *core) recv(slot string) time.Duration {
	end := c.value("SELECT pg_current_wal_flush_lsn()")
	bin, _ := pgtest.Find()
	start := time.Now()
	cmd := exec.Command(bin.Bin("pg_recvlogical"), "-h", c.Dir(), "-p", strconv.Itoa(c.Port()), "-U", "postgres", "-d", "app", "-S", slot,
		"--start", "-f", "/dev/null", "-E", end, "-o", "proto_version=2", "-o", "streaming=on", "-o", "messages=true", "-o", "publication_names=synchro", "--no-loop", "-s", "1")
	if out, err := cmd.CombinedOutput(); err != nil {
		c.t.Fatalf("%v %s", err, out)
	}
	return time.Since(start)
}

func TestScratchBench(t *testing.T) {
	n := 100000
	if v := os.Getenv("N"); v != "" {
		n, _ = strconv.Atoi(v)
	}
	c := newCore(t, pgtest.Config{Settings: []string{"max_wal_size='4GB'", "shared_buffers='512MB'", "session_preload_libraries='auto_explain'", "auto_explain.log_min_duration='" + os.Getenv("EXPLAIN") + "'", "auto_explain.log_analyze=off", "auto_explain.log_timing=on", "auto_explain.log_nested_statements=on"}})
	c.start()
	c.streaming()
	c.register()
	c.materialized()
	c.stop()
	c.exec("SELECT pg_create_logical_replication_slot('cmp', 'pgoutput')")
	mode := os.Getenv("MODE")
	t0 := time.Now()
	switch mode {
	case "small":
		script := c.Dir() + "/s.sql"
		os.WriteFile(script, []byte("INSERT INTO app.item (id, owner, big) VALUES (nextval('app.s'), 'u' || :client_id, repeat('x', 100));\n"), 0o644)
		c.exec("CREATE SEQUENCE app.s")
		bin, _ := pgtest.Find()
		out, err := exec.Command(bin.Bin("pgbench"), "-h", c.Dir(), "-p", strconv.Itoa(c.Port()), "-U", "postgres", "-n", "-M", "prepared", "-c", "4", "-t", strconv.Itoa(n/4), "-f", script, "app").CombinedOutput()
		if err != nil {
			t.Fatalf("%v %s", err, out)
		}
	default:
		c.exec(fmt.Sprintf("INSERT INTO app.item (id, owner, big) SELECT g, 'u' || g %% 10, repeat('x', 100) FROM generate_series(1, %d) g", n))
	}
	t.Logf("wrote in %v", time.Since(t0))
	c.exec("CHECKPOINT")
	d := c.recv("cmp")
	t.Logf("pg_recvlogical %v = %.0f/s", d, float64(n)/d.Seconds())
	t0 = time.Now()
	c.start()
	c.streaming()
	pid := c.value("SELECT pid FROM pg_stat_activity WHERE application_name = 'synchro apply'")
	stream := c.value("SELECT pid FROM pg_stat_activity WHERE application_name = 'synchro stream'")
	if os.Getenv("PERF") != "" {
		cmd := exec.Command("perf", "record", "-F", "999", "-o", "/tmp/perf.data", "-p", pid, "--", "sleep", os.Getenv("PERF"))
		cmd.Start()
		defer cmd.Wait()
	}
	stats := []*exec.Cmd{}
	for i, p := range []string{pid, stream, strconv.Itoa(os.Getpid())} {
		cmd := exec.Command("perf", "stat", "-x,", "-o", fmt.Sprintf("/tmp/stat%d", i), "-e", "instructions:u,instructions:k", "-p", p)
		cmd.Start()
		stats = append(stats, cmd)
	}
	defer func() {
		for i, cmd := range stats {
			cmd.Process.Signal(syscall.SIGINT)
			cmd.Wait()
			b, _ := os.ReadFile(fmt.Sprintf("/tmp/stat%d", i))
			for _, l := range strings.Split(string(b), "\n") {
				f := strings.Split(l, ",")
				if len(f) > 3 {
					v, _ := strconv.ParseFloat(f[0], 64)
					t.Logf("%d %s %.0f per row", i, f[2], v/float64(n))
				}
			}
		}
	}()
	c.materialized()
	d2 := time.Since(t0)
	for _, app := range []string{"synchro apply", "synchro stream", "synchro keeper"} {
		pid := c.value("SELECT coalesce((SELECT pid FROM pg_stat_activity WHERE application_name = $1), 0)", app)
		b, _ := os.ReadFile("/proc/" + pid + "/stat")
		f := strings.Fields(string(b)[strings.LastIndexByte(string(b), ')')+1:])
		u, _ := strconv.Atoi(f[11])
		sy, _ := strconv.Atoi(f[12])
		t.Logf("cpu %s: user %d ms sys %d ms", app, u*10, sy*10)
	}
	var ru syscall.Rusage
	syscall.Getrusage(0, &ru)
	t.Logf("cpu go: user %v sys %v", time.Duration(ru.Utime.Nano()), time.Duration(ru.Stime.Nano()))
	t.Logf("worker %v = %.0f/s ratio %.3f", d2, float64(n)/d2.Seconds(), d.Seconds()/d2.Seconds())
	b, _ := os.ReadFile("/proc/self/status")
	for _, l := range strings.Split(string(b), "\n") {
		if strings.HasPrefix(l, "VmHWM") || strings.HasPrefix(l, "VmRSS") {
			t.Log(l)
		}
	}
	if os.Getenv("EXPLAIN") != "-1" {
		os.WriteFile("/tmp/explain.log", []byte(c.Logs()), 0o644)
	}
	if os.Getenv("CMP") != "" {
		c.compare()
	}
	_ = context.Background
}
