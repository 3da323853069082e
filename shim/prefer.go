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
		for more := true; more; {
			var item string
			item, line, more = cutUnquoted(line, ',')
			preference, _, _ := cutUnquoted(item, ';')
			name, value, _ := strings.Cut(preference, "=")
			if strings.EqualFold(trimBlanks(name), "wait") {
				return min(delay(trimBlanks(value), most), most)
			}
		}
	}
	return 0
}

// delay reads a number of seconds, or a quoted one; 0 when it is none. What is too large for any clock is the most.
func delay(value string, most time.Duration) time.Duration {
	if n := len(value); n >= 2 && value[0] == '"' && value[n-1] == '"' {
		value = strings.ReplaceAll(value[1:n-1], `\`, "") // in digits it can only quote one
	}
	if value == "" || strings.Trim(value, "0123456789") != "" {
		return 0
	}
	seconds, err := strconv.ParseUint(value, 10, 31)
	if err != nil {
		return most
	}
	return time.Duration(seconds) * time.Second
}

// cutUnquoted is strings.Cut at the first separator that is not inside a quoted string.
func cutUnquoted(s string, separator byte) (before, after string, found bool) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == separator && !quoted:
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}

func trimBlanks(s string) string { return strings.Trim(s, " \t") }
