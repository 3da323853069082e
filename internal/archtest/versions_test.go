package archtest

import (
	"regexp"
	"strings"
	"testing"
)

var varlena = regexp.MustCompile(`\b(VARDATA|VARSIZE|SET_VARSIZE|VARATT)`)

// Up to PostgreSQL 15 postgres.h declares these macros; compat.h knows where they are since.
func TestVarlenaMacrosComeFromCompat(t *testing.T) {
	for _, p := range sources(t, "extension", ".c", ".h") {
		text := read(t, p)
		if varlena.MatchString(text) && p != "extension/compat.h" && !strings.Contains(text, `#include "compat.h"`) {
			t.Errorf("%s uses varlena macros without compat.h: it does not build on PostgreSQL 16", p)
		}
	}
}
