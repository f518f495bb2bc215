package document_test

import (
	"testing"
	"time"

	"sandbox/core/document"
)

func TestMoment(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	for s, want := range map[string]string{
		"2d": "2026-03-08T12:00:00Z", "1d12h": "2026-03-09T00:00:00Z", "90m": "2026-03-10T10:30:00Z", "0s": "2026-03-10T12:00:00Z",
		"2026-01-31T00:00:00+01:00": "2026-01-31T00:00:00+01:00",
		"-1h":                       "", "-2d": "", "d": "", "2d-1h": "", "1.5d": "", "2days": "", "99999d": "", "": "", "yesterday": "",
		"65535d2562047h": "", // more than a Duration holds
	} {
		got, ok := document.Moment(s, now)
		if ok != (want != "") || ok && got.Format(time.RFC3339) != want {
			t.Errorf("%q is %v, %v; want %q", s, got, ok, want)
		}
	}
}

// FuzzDuration wants no duration below 0, whatever is sent.
func FuzzDuration(f *testing.F) {
	for _, s := range []string{"1d12h", "90m", "-1h", "65535d2562047h47m16s", "1d-1ns", "9223372036854775807ns"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if d, ok := document.Duration(s); ok && d < 0 {
			t.Errorf("%q is %v", s, d)
		}
	})
}
