package e2b

import (
	"net/url"
	"testing"
	"time"

	"sandbox/core"
	"sandbox/core/fault"
)

// An interval is in seconds, begins with the box unless told otherwise, and has the
// second of its end.
func TestParseInterval(t *testing.T) {
	t.Parallel()
	now, started := time.Unix(10_000, 500), time.Unix(9_000, 0)
	rec := core.Record{CreatedAt: time.Unix(8_000, 0), StartedAt: &started}
	for text, want := range map[string][2]int64{
		"": {9_000, 10_000}, "start=9500": {9_500, 10_000}, "end=9600": {9_000, 9_601}, "start=9500&end=9500": {9_500, 9_501},
		"start=20000": {20_000, 10_000}, "start=0&end=2147483647": {0, 2147483648}, "other=1": {9_000, 10_000},
		"start=-1": {}, "start=x": {}, "end=": {}, "end=2147483648": {}, "start=9501&end=9500": {}, "start=1e3": {},
	} {
		query, err := url.ParseQuery(text)
		if err != nil {
			t.Fatal(err)
		}
		q, err := parseInterval(query, rec, now)
		if refused := want == [2]int64{}; refused != fault.Is(err, fault.InvalidArgument) || !refused && [2]int64{q.From.Unix(), q.To.Unix()} != want {
			t.Errorf("%q is %v to %v, %v; want %v", text, q.From.Unix(), q.To.Unix(), err, want)
		}
	}
}
