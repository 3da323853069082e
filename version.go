// Package synchro holds what every part must agree on: the version, whose only home is synchro.control.
package synchro

import (
	_ "embed"
	"strings"
)

//go:embed synchro.control
var control string

// Version is the version of the extension and of everything built beside it.
func Version() string {
	for line := range strings.Lines(control) {
		if key, value, ok := strings.Cut(line, "="); ok && strings.TrimSpace(key) == "default_version" {
			return strings.Trim(strings.TrimSpace(value), "'")
		}
	}
	return ""
}
