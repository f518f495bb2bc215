package shim

import (
	"testing"
	"time"
)

// An init tells some states at once, and is held back for as long as it tells more. A
// connection that it makes anew changes nothing.
func TestPace(t *testing.T) {
	t.Parallel()
	var p pace
	now := time.Unix(1_000_000, 0)
	for i := range 3 * statesAtOnce {
		want := max(0, time.Duration(i+1-statesAtOnce)) * stateTime
		if got := p.delay(now); got != want {
			t.Fatalf("state %d waits %v, want %v", i+1, got, want)
		}
	}
	if got := p.delay(now.Add(time.Hour)); got != 0 {
		t.Errorf("after an hour one waits %v", got)
	}
}
