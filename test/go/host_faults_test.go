package systest

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"synchro/internal/pgtest"
)

// faultyCore builds, once, the core that fails when told to and puts it beside the real one.
var faultyCore = sync.OnceValues(func() (string, error) {
	const name = "synchro_core_faults"
	inst, err := pgtest.Find()
	if err != nil {
		return "", err
	}
	repo, err := pgtest.RepoDir()
	if err != nil {
		return "", err
	}
	out := filepath.Join(inst.PkgLibDir(), name+".so")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-buildmode=c-shared", "-tags", "netgo,osusergo,synchro_faults",
		"-ldflags", "-s -w -X runtime.godebugDefault=asyncpreemptoff=1", "-o", out, "./cgo")
	cmd.Dir, cmd.Stderr = repo, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", err
	}
	return name, os.Chmod(out, 0o755)
})

// startFaulty starts a cluster whose core fails on order.
func startFaulty(t testing.TB, host string) *pgtest.Cluster {
	t.Helper()
	library, err := faultyCore()
	if err != nil {
		t.Fatal(err)
	}
	return startHost(t, host, "synchro.core_library = "+library)
}

// order makes the core fail; it returns when the core has read the order.
func order(t testing.TB, c *pgtest.Cluster, how string) {
	t.Helper()
	path := filepath.Join(c.DataDir(), "synchro_fault")
	if err := os.WriteFile(path+".new", []byte(how), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	pgtest.Poll(t, settle, "obedient core", func() bool { _, err := os.Stat(path); return os.IsNotExist(err) })
}

func TestHostFatalErrorsRestartOnlyTheCore(t *testing.T) {
	t.Parallel()
	c := startFaulty(t, "process")
	untouched := workingBackend(t, c)
	for _, how := range []string{"panic", "map", "exit", "segv"} {
		t.Run(how, func(t *testing.T) {
			before := awaitWorking(t, c)
			order(t, c, how)
			after := awaitOther(t, c, before)
			if after.PID != before.PID || after.Restarts != before.Restarts+1 {
				t.Errorf("not only the core restarted: %+v, then %+v", before, after)
			}
			untouched()
		})
	}
}

func TestHostRecoveredPanicStartsCleanCore(t *testing.T) {
	t.Parallel()
	for _, host := range hosts {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			c := startFaulty(t, host)
			untouched := workingBackend(t, c)
			before := awaitWorking(t, c)
			order(t, c, "recover")
			awaitOther(t, c, before)
			untouched()
			awaitLog(t, c, "core reports panic")
		})
	}
}

func TestHostHungCoreIsKilled(t *testing.T) {
	t.Parallel()
	for _, host := range hosts {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			c := startFaulty(t, host)
			core := awaitWorking(t, c).CorePID
			order(t, c, "hang")
			begin := time.Now()
			if err := c.Stop(pgtest.Fast); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begin); took > 5*time.Second {
				t.Errorf("fast stop took %v", took)
			}
			pgtest.Poll(t, settle, "end of the core", func() bool { return syscall.Kill(core, 0) != nil })
		})
	}
}

func TestHostProductionCoreTakesNoOrders(t *testing.T) {
	t.Parallel()
	c := startHost(t, "process")
	before := awaitWorking(t, c)
	path := filepath.Join(c.DataDir(), "synchro_fault")
	if err := os.WriteFile(path, []byte("exit"), 0o644); err != nil {
		t.Fatal(err)
	}
	// A full stop and start of the core later, the order is still there.
	reconfigure(t, c, "synchro.publication_name = 'other'")
	awaitStatus(t, c, "new core", func(st workerStatus) bool { return st.Restarts > before.Restarts })
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}
