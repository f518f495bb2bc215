package guest

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// The time in which a box is paused does not count for a clock, whenever it was set.
func TestClocksStandStill(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var all clocks
		var first, second, ended atomic.Bool
		all.after(10*time.Second, func() { first.Store(true) })
		stopped := all.after(10*time.Second, func() { ended.Store(true) })
		time.Sleep(4 * time.Second)
		all.pause()
		all.pause() // a second time, as a new shim does
		all.after(5*time.Second, func() { second.Store(true) })
		time.Sleep(time.Hour)
		stopped.stop()
		synctest.Wait()
		if first.Load() || second.Load() {
			t.Error("a clock went off in the pause")
		}
		all.resume()
		all.resume()
		time.Sleep(5*time.Second + time.Millisecond)
		synctest.Wait()
		if first.Load() || !second.Load() {
			t.Errorf("5 s later: %v, %v", first.Load(), second.Load())
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if !first.Load() || ended.Load() || len(all.set) > 0 {
			t.Errorf("6 s later: %v, %v, %d left", first.Load(), ended.Load(), len(all.set))
		}
	})
}

// No clock is an ended clock.
func TestNoClock(t *testing.T) {
	t.Parallel()
	var none *clock
	none.stop()
}
