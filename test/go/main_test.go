// Package systest tests the built extension as a whole, over throwaway clusters of internal/pgtest ("make build" first).
package systest

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"testing"

	"synchro/internal/pgtest"
)

func TestMain(m *testing.M) {
	if os.Getenv(steppingCore) != "" {
		os.Exit(stepCore())
	}
	if _, err := pgtest.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	flag.Parse()
	if flag.Lookup("test.parallel").Value.String() == fmt.Sprint(runtime.GOMAXPROCS(0)) {
		_ = flag.Set("test.parallel", "6") // these tests wait for servers much more than they compute
	}
	os.Exit(m.Run())
}
