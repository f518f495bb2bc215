package engine_test

import (
	"context"
	"testing"
	"time"

	"sandbox/core"
	"sandbox/core/local"
	"sandbox/core/options"
	"sandbox/test/rootfs"
)

func TestScratch(t *testing.T) {
	root := rootfs.Busybox(t)
	ctx := context.Background()
	h, err := local.Open(local.Config{Home: "/tmp/t/home", Beside: "/work/main/build", Owned: true})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close(ctx)
	for range 5 {
		o := options.Defaults()
		o.RootfsPath = root
		t0 := time.Now()
		b, err := h.Create(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		t1 := time.Now()
		for _, cmd := range [][]string{{"echo", "hi"}, {"sh", "-c", "id; cat /proc/self/status | grep -i -e cap -e nonew -e seccomp; cat /proc/self/cgroup; mount; ls -la / /dev; exit 3"}, {"nope"}} {
			t2 := time.Now()
			e, err := b.Exec(ctx, options.Exec{Cmd: cmd})
			if err != nil {
				t.Fatal(err)
			}
			var out []byte
			st, err := e.Stream(ctx, make([]byte, core.OutputBuffer), func(_ bool, p []byte) error { out = append(out, p...); return nil })
			t3 := time.Now()
			e.Close()
			t.Logf("create %v exec %v %+v %v\n%s", t1.Sub(t0), t3.Sub(t2), st, err, out)
		}
		if err := h.Remove(ctx, b.ID(), true); err != nil {
			t.Fatal(err)
		}
	}
}
