package model

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// seeds makes runs, each under a seed of its own, which it prints: for the given time, or as long as SYNCHRO_SOAK says, or
// exactly the one of -rapid.seed.
func seeds(t *testing.T, limit time.Duration, run func(rt *rapid.T)) {
	t.Helper()
	if soak := os.Getenv("SYNCHRO_SOAK"); soak != "" {
		var err error
		if limit, err = time.ParseDuration(soak); err != nil {
			t.Fatal(err)
		}
	}
	given := flag.Lookup("rapid.seed").Value.String()
	defer func() { _ = flag.Set("rapid.seed", given) }()
	seed, _ := strconv.ParseUint(given, 10, 64)
	single := seed != 0
	if !single {
		seed = uint64(time.Now().UnixNano()) % 1e9
	}
	for end := time.Now().Add(limit); ; seed++ {
		t.Logf("seed %d", seed)
		_ = flag.Set("rapid.seed", fmt.Sprint(seed))
		rapid.Check(t, run)
		if single || time.Now().After(end) {
			return
		}
	}
}

// finding is what a run that is expected to fail tells.
type finding struct {
	steps  int
	reason string
}

// hunt makes runs until one fails.
func hunt(limit int, run func(rt *rapid.T, f *finding)) finding {
	seed := flag.Lookup("rapid.seed").Value.String()
	defer func() { _ = flag.Set("rapid.seed", seed) }()
	found := finding{}
	for i := 1; i <= limit && found.reason == ""; i++ {
		_ = flag.Set("rapid.seed", fmt.Sprint(i))
		h := &hunter{}
		done := make(chan struct{})
		go func() {
			defer close(done)
			rapid.Check(h, func(rt *rapid.T) {
				if !h.hunted { // rapid wants to see it again: once is enough
					h.hunted = true
					run(rt, &found)
				}
			})
		}()
		<-done
		if h.failed && found.reason == "" {
			found.reason = h.what
		}
	}
	return found
}

// hunter is a test that is expected to fail.
type hunter struct {
	hunted, failed bool
	what           string
}

func (h *hunter) Helper()                        {}
func (h *hunter) Name() string                   { return "hunt" }
func (h *hunter) Logf(string, ...any)            {}
func (h *hunter) Log(...any)                     {}
func (h *hunter) Skipf(string, ...any)           { h.SkipNow() }
func (h *hunter) Skip(...any)                    { h.SkipNow() }
func (h *hunter) SkipNow()                       { runtime.Goexit() }
func (h *hunter) Errorf(format string, a ...any) { h.Error(fmt.Sprintf(format, a...)) }
func (h *hunter) Error(a ...any)                 { h.failed, h.what = true, h.what+fmt.Sprint(a...) }
func (h *hunter) Fatalf(format string, a ...any) { h.Errorf(format, a...); h.FailNow() }
func (h *hunter) Fatal(a ...any)                 { h.Error(a...); h.FailNow() }
func (h *hunter) FailNow()                       { h.failed = true; runtime.Goexit() }
func (h *hunter) Fail()                          { h.failed = true }
func (h *hunter) Failed() bool                   { return h.failed }
