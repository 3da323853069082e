// Package rescue is how goroutines of the core start: a panic becomes an error that its caller handles, instead of the end of
// the process that hosts us, which may be the database server.
package rescue

import (
	"fmt"
	"os"
	"runtime/debug"
)

// PanicError is a recovered panic. It carries the type of the panic's value but never the value, which may hold data.
type PanicError struct {
	Type string
}

func (e *PanicError) Error() string { return "panic: " + e.Type }

// Call runs f and returns its error, or a *PanicError. The stack goes to the standard error output, the server's log.
func Call(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Type: fmt.Sprintf("%T", v)}
			fmt.Fprintf(os.Stderr, "synchro core: recovered %v\n%s", err, debug.Stack())
		}
	}()
	return f()
}

// Go runs f in its own goroutine and hands its result, or a *PanicError, to done.
func Go(f func() error, done func(error)) {
	go func() { done(Call(f)) }()
}
