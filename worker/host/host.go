// Package host runs the worker for a C host: it maps the control and status pipes of cgo/core_abi.h to worker.Run.
package host

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"synchro/internal/rescue"
	"synchro/worker"
)

// retryDelay is the pause between two runs of a worker that failed.
const retryDelay = time.Second

var (
	running atomic.Bool
	ended   = make(chan struct{})
)

// Start starts the one core of this process on two pipes, which it owns from now on. It returns false if there is one already.
// It is called before any goroutine exists and from a thread that may run Go.
func Start(controlFD, statusFD int) bool {
	if running.Swap(true) {
		return false
	}
	// The libraries below read PGHOST, PGPASSWORD and the like, but configuration comes through the pipe only.
	os.Clearenv()
	syscall.CloseOnExec(controlFD)
	syscall.CloseOnExec(statusFD)
	control := os.NewFile(uintptr(controlFD), "control")
	status := os.NewFile(uintptr(statusFD), "status")
	s := &session{status: statusWriter{w: status}, wake: make(chan struct{}, 1),
		find: findServer, run: worker.Run, retryDelay: retryDelay}
	rescue.Go(func() error { return s.serve(control) }, func(err error) {
		s.status.failure(err)
		close(ended)
		status.Close() // last: the host takes it for our end
	})
	return true
}

// Wait returns when the core has ended.
func Wait() { <-ended }

// session is one life of the core.
type session struct {
	status     statusWriter
	limits     atomic.Pointer[worker.Limits]
	wake       chan struct{}
	find       func(context.Context, settings) (string, error)
	run        func(context.Context, worker.Config, func(worker.State)) error
	retryDelay time.Duration
}

// serve reads the configuration and works until it is told to stop or control ends. An error is the end of this core.
func (s *session) serve(control io.Reader) error {
	first, err := readFrame(control)
	if err != nil {
		return err
	}
	settings, err := parseConfig(first)
	if err != nil {
		return err
	}
	s.setLimits(settings.limits)

	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	rescue.Go(func() error { return s.listen(control) }, func(err error) { cancel(err) })
	var faults sync.WaitGroup
	startFaults(ctx, &faults, cancel)
	defer faults.Wait()

	err = s.work(ctx, settings)
	if ctx.Err() != nil {
		if err = context.Cause(ctx); errors.Is(err, errStop) {
			return nil
		}
	}
	return err
}

// work runs the worker again and again: its errors are for the server's log and for another try, a panic is not.
func (s *session) work(ctx context.Context, settings settings) error {
	for {
		err := rescue.Call(func() error { return s.runOnce(ctx, settings) })
		if ctx.Err() != nil {
			return nil
		}
		var p *rescue.PanicError
		if errors.As(err, &p) {
			return err // whatever panicked left its state behind: only a new core is surely clean
		}
		s.status.failure(err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(s.retryDelay):
		}
	}
}

// runOnce finds a way into the server and serves until something fails.
func (s *session) runOnce(ctx context.Context, settings settings) error {
	s.status.state(worker.Connecting)
	conninfo, err := s.find(ctx, settings)
	if err != nil {
		return err
	}
	return s.run(ctx, worker.Config{
		Conninfo:    conninfo,
		Database:    settings.database,
		Slot:        settings.slot,
		Publication: settings.publication,
		Limits:      func() worker.Limits { return *s.limits.Load() },
		Wake:        s.wake,
		Failed:      s.status.failure,
	}, s.status.state)
}

// listen handles control frames until the one that ends us. It always returns an error: errStop for an orderly end.
func (s *session) listen(control io.Reader) error {
	for {
		f, err := readFrame(control)
		if errors.Is(err, io.EOF) {
			return errStop // the host is gone
		}
		if err != nil {
			return err
		}
		switch f.kind {
		case frameStop:
			return errStop
		case frameLimits:
			limits, err := parseLimits(f)
			if err != nil {
				return err
			}
			s.setLimits(limits)
			s.tick()
		case frameWake:
			s.tick()
		default:
			return errProtocol
		}
	}
}

// setLimits puts limits in force.
func (s *session) setLimits(l worker.Limits) {
	s.limits.Store(&l)
	debug.SetMemoryLimit(l.MemoryBytes)
}

// tick wakes the worker; ticks that it has not taken yet are one.
func (s *session) tick() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
