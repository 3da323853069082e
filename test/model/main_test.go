// Package model holds the model test of the four endpoints: random clients, writers and faults against a real server, and an
// oracle that knows from the source tables alone what every client must hold and what must become of every mutation.
//
// One seed is one run: "-rapid.seed=N" repeats it. TestRandomRuns makes runs until SYNCHRO_SOAK (a duration) is over, a few without it.
package model

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"synchro/internal/pgtest"
)

// settle is how long anything may take that normally takes a second or two.
const settle = 60 * time.Second

func TestMain(m *testing.M) {
	if _, err := pgtest.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	flag.Parse()
	// A run is one check. What servers do is not bound to a seed alone, so a failure is not worth minimizing for long.
	for name, value := range map[string]string{"rapid.checks": "1", "rapid.nofailfile": "true", "rapid.steps": "120", "rapid.shrinktime": "0s"} {
		if flag.Lookup(name).Value.String() == flag.Lookup(name).DefValue {
			_ = flag.Set(name, value)
		}
	}
	os.Exit(m.Run())
}
