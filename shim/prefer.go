package shim

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// preferredWait is how long the client prefers to wait (RFC 7240, "Prefer: wait=10"), at most the given time; 0 when it does not. The
// first wait of a request counts; one that is malformed or below a second is ignored, as preferences are.
func preferredWait(h http.Header, most time.Duration) time.Duration {
	for _, line := range h.Values("Prefer") {
		for item := range strings.SplitSeq(line, ",") {
			preference, _, _ := strings.Cut(item, ";")
			name, value, _ := strings.Cut(preference, "=")
			if !strings.EqualFold(strings.TrimSpace(name), "wait") {
				continue
			}
			value = strings.TrimSpace(value)
			if n := len(value); n >= 2 && value[0] == '"' && value[n-1] == '"' {
				value = value[1 : n-1]
			}
			seconds, err := strconv.ParseUint(value, 10, 31)
			if err != nil {
				return 0
			}
			return min(time.Duration(seconds)*time.Second, most)
		}
	}
	return 0
}
