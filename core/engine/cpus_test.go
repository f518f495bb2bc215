package engine_test

import (
	"runtime"
	"strconv"
	"testing"

	"sandbox/core/options"
	"sandbox/test/rootfs"
)

// What counts CPUs in a box counts those that it may use.
func TestCPUs(t *testing.T) {
	t.Parallel()
	e, root := open(t), rootfs.Busybox(t)
	for _, cpus := range []int{1, runtime.NumCPU()} {
		box, err := boxWith(t, e, root, func(o *options.Box) { o.CPUs = cpus })
		must(t, err)
		if got := sh(t, e, box, "nproc"); got != strconv.Itoa(cpus)+"\n" {
			t.Errorf("nproc tells of %q CPUs, want %d", got, cpus)
		}
	}
}
