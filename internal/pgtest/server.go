package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// StopMode is how a server is told to stop; the values are the signals that PostgreSQL gives these meanings.
type StopMode syscall.Signal

// Stop modes.
const (
	Smart     = StopMode(syscall.SIGTERM)
	Fast      = StopMode(syscall.SIGINT)
	Immediate = StopMode(syscall.SIGQUIT)
)

const (
	startLimit = 60 * time.Second
	stopLimit  = 60 * time.Second
)

// Start starts the server and returns when it accepts connections.
func (c *Cluster) Start(ctx context.Context) error {
	if c.Running() {
		return nil
	}
	if err := c.writeConfig(); err != nil {
		return err
	}
	return WaitFor(ctx, startLimit, "running server", func() (bool, error) {
		mark := c.logSize()
		err := c.startOnce(ctx)
		if err == nil {
			return true, nil
		}
		log := c.logFrom(mark)
		switch {
		case strings.Contains(log, "pre-existing shared memory block"):
			return false, nil // children of a killed postmaster are still leaving
		case strings.Contains(log, "Address already in use") && c.cfg.Port == 0:
			if c.port, err = FreePort(); err != nil {
				return false, err
			}
			return false, c.writeConfig()
		}
		return false, fmt.Errorf("%w; server log:\n%s", err, log)
	})
}

func (c *Cluster) startOnce(ctx context.Context) error {
	log, err := os.OpenFile(c.LogPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cred, err := serverCredential()
	if err != nil {
		return err
	}
	// The real path: PostgreSQL resolves its own name to find its files.
	postgres, err := filepath.EvalSymlinks(c.inst.Bin("postgres"))
	if err != nil {
		return err
	}
	cmd := exec.Command(postgres, "-D", c.DataDir())
	cmd.Env = serverEnv()
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred, Setsid: true}
	if !c.cfg.Detach {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGQUIT
	}
	if c.proc, err = launch(cmd); err != nil {
		return err
	}
	err = WaitFor(ctx, startLimit, "ready server", func() (bool, error) {
		select {
		case <-c.proc.done:
			return false, errors.New("server ended at start")
		default:
		}
		pid, state := c.pidFile()
		return pid == c.proc.pid && state == "ready", nil
	})
	if err != nil {
		_ = syscall.Kill(c.proc.pid, syscall.SIGQUIT)
		<-c.proc.done
		c.proc = nil
	}
	return err
}

// pidFile reads postmaster.pid: the pid on line 1 and the state on line 8; 0 if there is none.
func (c *Cluster) pidFile() (pid int, state string) {
	b, err := os.ReadFile(filepath.Join(c.DataDir(), "postmaster.pid"))
	if err != nil {
		return 0, ""
	}
	lines := strings.Split(string(b), "\n")
	pid, _ = strconv.Atoi(strings.TrimSpace(lines[0]))
	if len(lines) > 7 {
		state = strings.TrimSpace(lines[7])
	}
	return pid, state
}

// PID is the process id of the postmaster, 0 if none runs on the data directory.
func (c *Cluster) PID() int {
	pid, _ := c.pidFile()
	if pid <= 0 {
		return 0
	}
	// A crash leaves the file behind, and the number may belong to another program by now.
	cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	if err != nil || cwd != c.DataDir() {
		return 0
	}
	return pid
}

// Running says whether a server runs on the data directory, started by whomever.
func (c *Cluster) Running() bool { return c.PID() != 0 }

// Stop stops the server and waits for its end. Stopping a stopped server is no error.
func (c *Cluster) Stop(mode StopMode) error {
	pid := c.PID()
	if pid == 0 {
		return c.reap()
	}
	if err := syscall.Kill(pid, syscall.Signal(mode)); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	err := WaitFor(context.Background(), stopLimit, "end of server", func() (bool, error) { return c.PID() == 0, nil })
	if err != nil {
		return err
	}
	return c.reap()
}

func (c *Cluster) reap() error {
	if c.proc == nil {
		return nil
	}
	select {
	case <-c.proc.done:
		c.proc = nil
		return nil
	case <-time.After(stopLimit):
		return errors.New("server did not end")
	}
}

// Restart stops the server in the given mode and starts it again.
func (c *Cluster) Restart(ctx context.Context, mode StopMode) error {
	if err := c.Stop(mode); err != nil {
		return err
	}
	return c.Start(ctx)
}

// Reload makes the server read its configuration again.
func (c *Cluster) Reload() error { return c.Signal(c.PID(), syscall.SIGHUP) }

// Kill sends SIGKILL to one process of this cluster.
func (c *Cluster) Kill(pid int) error { return c.Signal(pid, syscall.SIGKILL) }

// Signal sends a signal to the postmaster or one of its children, and to nothing else.
func (c *Cluster) Signal(pid int, sig syscall.Signal) error {
	postmaster := c.PID()
	if pid <= 0 || postmaster == 0 || (pid != postmaster && !descends(pid, postmaster)) {
		return fmt.Errorf("process %d is not part of this cluster", pid)
	}
	return syscall.Kill(pid, sig)
}

// descends says whether ancestor is a parent, grandparent, ... of pid.
func descends(pid, ancestor int) bool {
	for pid > 1 {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return false
		}
		// "pid (name) state ppid": the name may hold blanks and parentheses.
		fields := strings.Fields(string(b)[strings.LastIndexByte(string(b), ')')+1:])
		if len(fields) < 2 {
			return false
		}
		if pid, err = strconv.Atoi(fields[1]); err != nil {
			return false
		}
		if pid == ancestor {
			return true
		}
	}
	return false
}
