package protocol

import (
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var delaySeconds = regexp.MustCompile(`^(?:0|[1-9][0-9]*)(?:\.[0-9]+)?$`)

// ParseRetryAfter reads a Retry-After value: seconds, possibly with a fraction,
// or an IMF-fixdate. Waits longer than a Duration can hold are cut to its maximum.
func ParseRetryAfter(value string, now time.Time) (wait time.Duration, ok bool) {
	value = strings.Trim(value, " \t")
	if delaySeconds.MatchString(value) {
		seconds, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, false
		}
		if nanos := seconds * float64(time.Second); nanos < math.MaxInt64 {
			return time.Duration(nanos), true
		}
		return math.MaxInt64, true
	}
	date, err := time.Parse(http.TimeFormat, value)
	if err != nil || date.UTC().Format(http.TimeFormat) != value {
		return 0, false // time.Parse alone takes a wrong weekday and other spellings
	}
	return max(0, date.Sub(now)), true
}
