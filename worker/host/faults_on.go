//go:build synchro_faults

package host

import (
	"context"
	"os"
	"sync"
	"syscall"
	"time"

	"synchro/internal/rescue"
)

// faultFile, in the data directory, names the way to fail; reading it removes it.
const faultFile = "synchro_fault"

// startFaults watches for an order to fail. This file is in test libraries only.
func startFaults(ctx context.Context, wg *sync.WaitGroup, end func(error)) {
	wg.Add(1)
	go func() {
		defer wg.Done()
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(20 * time.Millisecond):
			}
			if order, err := os.ReadFile(faultFile); err == nil && os.Remove(faultFile) == nil {
				fail(string(order), end)
			}
		}
	}()
}

// fail fails in the ordered way.
func fail(how string, end func(error)) {
	switch how {
	case "recover":
		end(rescue.Call(func() error { panic("ordered by a test") }))
	case "panic":
		panic("ordered by a test")
	case "map":
		m := map[int]int{}
		for range 8 {
			go func() {
				for i := 0; ; i++ {
					m[i&1023] = i
				}
			}()
		}
	case "exit":
		os.Exit(1)
	case "segv":
		_ = syscall.Kill(syscall.Getpid(), syscall.SIGSEGV)
	case "hang":
		select {} // this goroutine is waited for at the end
	}
}
