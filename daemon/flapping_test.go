package daemon

import (
	"testing"
	"time"

	"sandbox/api"
	"sandbox/core"
)

// A command that ends again and again is named once, and again only when it has run for
// long in between.
func TestFlapping(t *testing.T) {
	t.Parallel()
	f, now := flapping{}, time.Now()
	started := now
	rec := core.Record{ID: "box_a", StartedAt: &started, Command: &api.CommandState{}}
	plain := core.Record{ID: "box_b", StartedAt: &started}
	named := 0
	restart := func(n int, each time.Duration) {
		for range n {
			now = now.Add(each)
			rec.Command.Restarts++
			named += len(f.look([]core.Record{rec, plain}, now))
		}
	}
	want := func(n int, when string) {
		t.Helper()
		if named != n {
			t.Errorf("%s it was named %d times, want %d", when, named, n)
		}
	}
	restart(flapsFrom-1, time.Second)
	want(0, "at first")
	restart(1, time.Second)
	want(1, "then")
	restart(100, time.Minute)
	want(1, "on and on")
	restart(30, time.Hour)
	want(1, "while it ends now and then")
	restart(3*flapsFrom, time.Second)
	want(2, "when that begins anew")
	again := now
	rec.StartedAt, rec.Command.Restarts = &again, 0
	restart(flapsFrom, time.Second)
	want(3, "after a start of the box")
	if f.look([]core.Record{plain}, now); len(f) != 0 {
		t.Errorf("it knows %d boxes that are gone", len(f))
	}
}
