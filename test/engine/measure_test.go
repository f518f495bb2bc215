package engine_test

import (
	"testing"
	"time"

	"sandbox/core"
	"sandbox/core/engine"
	"sandbox/core/options"
	"sandbox/test/boxes"
	"sandbox/test/members"
	"sandbox/test/rootfs"
)

// TestMeasure measures all boxes of a home at once: one that works, one that does
// nothing and is paused, and none that has stopped.
func TestMeasure(t *testing.T) {
	t.Parallel()
	for name, cached := range map[string]bool{"cached": true, "from the disk": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			e := boxes.OpenConfig(t, engine.Config{Home: home, Cached: cached})
			busy, err := boxWith(t, e, rootfs.Busybox(t), oneGB)
			must(t, err)
			still, err := boxWith(t, e, rootfs.Busybox(t), func(o *options.Box) { o.Network = options.NetworkNone })
			must(t, err)
			gone, err := boxWith(t, e, rootfs.Busybox(t), func(*options.Box) {})
			must(t, err)
			_, err = e.Stop(t.Context(), gone, 0)
			must(t, err)
			sh(t, e, busy, "head -c 20m /dev/urandom >/big; sync; cat /big >/dev/null; sleep 60 & sleep 60 &")
			_, err = e.Pause(t.Context(), still, false)
			must(t, err)
			var all map[string]core.Measured
			boxes.Await(t, "the count of its cache", func() bool { // the kernel brings memory.stat up to date every 2 s
				all = measured(t, e)
				return all[busy].CacheBytes > 16<<20
			})
			working, idle := all[busy], all[still]
			members.Equal(t, "measured", members.Of{
				"boxes": {len(all), 2}, "processes": {working.Processes, 2}, "of an idle box": {idle.Processes, 0},
				"CPU time": {working.CPU > 20*time.Millisecond, true}, "memory": {working.MemoryBytes > 20<<20, true},
				"cache": {working.CacheBytes <= working.MemoryBytes, true},
				"disk":  {working.DiskBytes != nil && *working.DiskBytes > 20<<20 && *working.DiskBytes < 64<<20, true},
				"none":  {idle.DiskBytes == nil, true}, "traffic of none": {*idle.Network, core.Traffic{}},
				"network": {working.Network != nil, true},
				"now":     {time.Since(working.At) < time.Minute && !working.At.Before(*working.StartedAt), true},
			})
			one, err := e.Usage(t.Context(), busy)
			if err != nil || one.Processes != 2 || one.DiskBytes == nil || one.CPU < working.CPU {
				t.Errorf("the box alone: %+v, %v", one, err)
			}
		})
	}
}

// measured returns what is measured of the boxes that are up, by their ids.
func measured(t *testing.T, e core.Engine) map[string]core.Measured {
	t.Helper()
	list, err := e.Measure(t.Context())
	must(t, err)
	all := map[string]core.Measured{}
	for _, m := range list {
		all[m.ID] = m
	}
	return all
}
