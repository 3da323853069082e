//go:build !synchro_faults

package host

import (
	"context"
	"sync"
)

// startFaults does nothing: only libraries built for the tests can be told to fail.
func startFaults(context.Context, *sync.WaitGroup, func(error)) {}
