package boxes

import (
	"testing"
	"time"

	"sandbox/api"
	"sandbox/core"
)

// Await waits until so holds, where nothing tells of it.
func Await(t testing.TB, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited too long for ", what)
		}
	}
}

// AwaitState waits until a box is in a state and returns its record.
func AwaitState(t testing.TB, e core.Engine, id string, want api.BoxStatus) (rec core.Record) {
	t.Helper()
	Await(t, "a box that is "+string(want), func() bool {
		var err error
		if rec, err = e.Get(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		return rec.Status == want
	})
	return rec
}
