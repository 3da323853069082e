// Package systest tests the built extension as a whole, over throwaway clusters of internal/pgtest ("make build" first).
package systest

import (
	"fmt"
	"os"
	"testing"

	"synchro/internal/pgtest"
)

func TestMain(m *testing.M) {
	if _, err := pgtest.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
