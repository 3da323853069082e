package systest

import (
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"synchro/internal/pgtest"
)

// hasSignal says whether a mask of /proc/<pid>/status contains a signal.
func hasSignal(t testing.TB, mask string, sig syscall.Signal) bool {
	t.Helper()
	bits, err := strconv.ParseUint(mask, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return bits&(1<<(uint(sig)-1)) != 0
}

func TestHostRestoresSignalState(t *testing.T) {
	t.Parallel()
	mask := map[string]string{}
	for _, host := range hosts {
		c := startHost(t, host)
		pid := awaitWorking(t, c).PID
		mask[host] = procStatus(t, pid, "SigBlk")
		for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGUSR1} {
			if !hasSignal(t, procStatus(t, pid, "SigCgt"), sig) {
				t.Errorf("%s: %v has no handler", host, sig)
			}
		}
		if !hasSignal(t, procStatus(t, pid, "SigIgn"), syscall.SIGPIPE) {
			t.Errorf("%s: SIGPIPE is not ignored", host)
		}
	}
	// The worker of the process host never runs Go: what it has is what PostgreSQL wants.
	if mask["process"] != mask["in_process"] {
		t.Errorf("blocked signals differ: %v", mask)
	}
}

func TestHostCoreStartsWithCleanSignals(t *testing.T) {
	t.Parallel()
	c := startHost(t, "process")
	core := awaitWorking(t, c).CorePID
	if blocked := strings.Trim(procStatus(t, core, "SigBlk"), "0"); blocked != "" {
		t.Errorf("the core's main thread blocks signals: %s", blocked)
	}
}

// wakeLimit is far below the second after which the worker wakes by itself.
const wakeLimit = 200 * time.Millisecond

// A latch wakes its process with SIGURG, which the Go runtime would take for itself.
func TestHostLosesNoWakeups(t *testing.T) {
	eachHost(t, func(t *testing.T, c *pgtest.Cluster) {
		conn := c.Connect(t, "", "")
		pid := awaitWorking(t, c).PID
		switches := func() int {
			n, err := strconv.Atoi(procStatus(t, pid, "voluntary_ctxt_switches"))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		const wakes = 50
		slow := 0
		for range wakes {
			before := switches()
			if _, err := conn.Exec(t.Context(), "SELECT synchro._worker_wake()"); err != nil {
				t.Fatal(err)
			}
			// Without its signal, the worker would sleep on until its next look at the world, up to a second later.
			if err := pgtest.WaitFor(t.Context(), wakeLimit, "wakeup", func() (bool, error) { return switches() > before, nil }); err != nil {
				slow++
			}
		}
		if slow > wakes/10 {
			t.Errorf("%d of %d wakeups were lost", slow, wakes)
		}
	})
}
