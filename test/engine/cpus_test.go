package engine_test

import (
	"runtime"
	"strconv"
	"strings"
	"testing"

	"sandbox/core/options"
	"sandbox/test/boxes"
	"sandbox/test/rootfs"
)

// What counts CPUs in a box counts those that it may use.
func TestCPUs(t *testing.T) {
	t.Parallel()
	e, root := boxes.Open(t, t.TempDir()), rootfs.Busybox(t)
	for _, cpus := range []int{1, runtime.NumCPU()} {
		box, err := boxWith(t, e, root, func(o *options.Box) { o.CPUs = cpus })
		must(t, err)
		if got := sh(t, e, box, "nproc"); got != strconv.Itoa(cpus)+"\n" {
			t.Errorf("nproc tells of %q CPUs, want %d", got, cpus)
		}
		if got := sh(t, e, box, "grep -c ^processor /proc/cpuinfo"); got != strconv.Itoa(cpus)+"\n" {
			t.Errorf("/proc/cpuinfo tells of %q CPUs, want %d", got, cpus)
		}
		// The number of each is the one that the kernel gives it.
		allowed := sh(t, e, box, "grep Cpus_allowed_list /proc/self/status | cut -f 2")
		if got := sh(t, e, box, "grep ^processor /proc/cpuinfo | cut -d ' ' -f 2"); cpus == 1 && got != allowed {
			t.Errorf("/proc/cpuinfo tells of CPU %q, and the kernel of %q", got, allowed)
		}
		if got := sh(t, e, box, "echo x >/proc/cpuinfo || umount /proc/cpuinfo || echo shut"); cpus < runtime.NumCPU() && !strings.Contains(got, "shut\n") {
			t.Errorf("a box changes its /proc/cpuinfo: %q", got)
		}
	}
}
