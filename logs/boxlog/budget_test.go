package boxlog

import (
	"testing"
	"time"
)

// A main command may print so much at once, and waits for nothing; what it prints from
// then on comes at the rate.
func TestBudget(t *testing.T) {
	t.Parallel()
	var b budget
	now := time.Now()
	if wait := b.spend(burst, now); wait != 0 {
		t.Errorf("the first %d bytes wait for %v", burst, wait)
	}
	if wait := b.spend(10*rate, now); wait != 10*time.Second {
		t.Errorf("the next ones wait for %v", wait)
	}
	now = now.Add(10 * time.Second)
	if wait := b.spend(rate, now); wait != time.Second {
		t.Errorf("after that, those of a second wait for %v", wait)
	}
	if wait := b.spend(burst, now.Add(time.Hour)); wait != 0 {
		t.Errorf("after an hour they wait for %v", wait)
	}
}
