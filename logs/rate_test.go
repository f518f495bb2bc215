package logs

import (
	"testing"
	"time"
)

// TestBucket checks that a burst of a minute's queries is allowed, and then one
// query whenever the next token is due.
func TestBucket(t *testing.T) {
	t.Parallel()
	var m meter
	now := time.Unix(1000, 0)
	step := func(later time.Duration, wantOK bool, remaining int, next time.Duration) {
		t.Helper()
		now = now.Add(later)
		a, ok := m.take("key", 60, now)
		if ok != wantOK || a.Limit != 60 || a.Remaining != remaining || a.Next != next {
			t.Errorf("got %+v, %v; want %v, %d, %v", a, ok, wantOK, remaining, next)
		}
	}
	for i := range 59 {
		step(0, true, 59-i, 0)
	}
	step(0, true, 0, time.Second)
	step(250*time.Millisecond, false, 0, 750*time.Millisecond)
	step(750*time.Millisecond, true, 0, time.Second)
	step(3500*time.Millisecond, true, 2, 0)
	step(time.Hour, true, 59, 0)
	if a, _ := m.take("key", 60, now); a.Reset != 2*time.Second {
		t.Errorf("full again in %v", a.Reset)
	}
	m.take("another", 60, now.Add(2*time.Minute))
	if len(m.buckets) != 1 {
		t.Errorf("%d buckets are kept", len(m.buckets))
	}
}
