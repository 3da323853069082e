package host

import (
	"context"
	"errors"
	"io"
	"regexp"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"

	"synchro/internal/rescue"
	"synchro/worker"
)

// Classed is an error that names its class for the server's log: lower case letters and '_', at most 31.
type Classed interface {
	error
	Class() string
}

// classError is an error that is nothing but its class.
type classError string

func (e classError) Error() string { return string(e) }
func (e classError) Class() string { return string(e) }

// Classes that this package itself gives; extension/core_status.c has hints for them.
const (
	classPanic           = "panic"
	classProtocol        = "host_mismatch"
	classConnection      = "connection_failed"
	classLogin           = "login_refused"
	classConnections     = "too_many_connections"
	classInvalidConninfo = "invalid_conninfo"
	classWrongServer     = "wrong_server"
	classServerStopping  = "server_stopping"
	classObjectInUse     = "object_in_use"
	classDatabase        = "database_error"
	classInternal        = "internal_error"
	classEnded           = "ended_early"
)

var word = regexp.MustCompile(`^[a-z_]{1,31}$`)

// statusWriter sends status lines. Each is one small write, which a pipe never splits or mixes.
type statusWriter struct {
	mu sync.Mutex
	w  io.Writer
}

// state reports a step of the core's life.
func (s *statusWriter) state(state worker.State) {
	if !word.MatchString(string(state)) {
		state = "unnamed"
	}
	s.line("state " + string(state))
}

// failure reports the class of an error, never its text. No error is none to report.
func (s *statusWriter) failure(err error) {
	if err == nil || errors.Is(err, errStop) {
		return
	}
	class, sqlstate := classify(err)
	s.line("error " + class + " " + sqlstate)
}

func (s *statusWriter) line(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = io.WriteString(s.w, text+"\n") // a host that does not listen any more has ended, and will end us
}

// noSQLState stands for an error that did not come from the server.
const noSQLState = "00000"

// classify gives the class and SQLSTATE of an error.
func classify(err error) (class, sqlstate string) {
	sqlstate = noSQLState
	var pg *pgconn.PgError
	if errors.As(err, &pg) && len(pg.Code) == len(noSQLState) {
		sqlstate = pg.Code
	}
	var classed Classed
	var p *rescue.PanicError
	var connect *pgconn.ConnectError
	switch {
	case errors.As(err, &p):
		return classPanic, noSQLState
	case errors.As(err, &classed) && word.MatchString(classed.Class()):
		return classed.Class(), sqlstate
	case pg != nil:
		return classOf(sqlstate), sqlstate
	case errors.Is(err, errProtocol):
		return classProtocol, sqlstate
	case errors.As(err, &connect), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, context.DeadlineExceeded), pgconn.Timeout(err):
		return classConnection, sqlstate
	}
	return classInternal, sqlstate
}

// classOf gives the class of a server error.
func classOf(sqlstate string) string {
	switch {
	case strings.HasPrefix(sqlstate, "28"):
		return classLogin
	case sqlstate == "53300":
		return classConnections
	case strings.HasPrefix(sqlstate, "57P"):
		return classServerStopping
	case strings.HasPrefix(sqlstate, "08"):
		return classConnection
	case sqlstate == "55006":
		return classObjectInUse
	}
	return classDatabase
}
