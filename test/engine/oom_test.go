package engine_test

import (
	"testing"

	"sandbox/api"
	"sandbox/core/options"
	"sandbox/test/boxes"
	"sandbox/test/rootfs"
)

func TestOOMKilled(t *testing.T) {
	t.Parallel()
	e := boxes.Open(t, t.TempDir())
	box, err := boxWith(t, e, rootfs.Busybox(t), func(o *options.Box) { o.MemoryMiB = 64 })
	must(t, err)
	const tooMuch = "dd if=/dev/zero of=/dev/null bs=200M count=1"
	// In this order: no kill is told of twice.
	for _, test := range []struct {
		script string
		reason api.Reason
		code   int
	}{
		{"kill -9 $$", "signaled", 137},
		{"exec " + tooMuch, "oom_killed", 137},
		{"kill -9 $$", "signaled", 137},
		{tooMuch + "; exit 3", "exited", 3},
		{"kill -9 $$", "signaled", 137},
		{"exec " + tooMuch, "oom_killed", 137},
	} {
		_, status := boxes.Output(t, e, box, options.Exec{Cmd: []string{"/bin/sh", "-c", test.script}})
		if status.Reason != test.reason || status.ExitCode != test.code || status.Status != api.ExecFailed {
			t.Errorf("%s: got %+v, want %s", test.script, status, test.reason)
		}
	}
}
