package document

import (
	"strconv"
	"strings"
	"time"
)

// Moment reads a time as people write it: a date-time of RFC 3339, or how long before
// now it was, as [Duration] reads it.
func Moment(s string, now time.Time) (t time.Time, ok bool) {
	if ago, ok := Duration(s); ok {
		return now.Add(-ago), true
	}
	t, err := time.Parse(time.RFC3339, s)
	return t, err == nil
}

// Duration reads a duration that is not negative, as Go does, with days before: 90m,
// 2d, 1d12h.
func Duration(s string) (d time.Duration, ok bool) {
	days, rest, ok := strings.Cut(s, "d")
	if !ok {
		days, rest = "0", s
	}
	n, err := strconv.ParseUint(days, 10, 16)
	if err == nil && (!ok || rest != "") {
		d, err = time.ParseDuration(rest)
	}
	whole := time.Duration(n)*24*time.Hour + d
	return whole, err == nil && d >= 0 && whole >= 0
}
