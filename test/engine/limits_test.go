package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/options"
	"sandbox/test/boxes"
	"sandbox/test/rootfs"
)

// createWith makes a box of a home with so much memory.
func createWith(t *testing.T, e core.Engine, home string, memoryMiB int) string {
	t.Helper()
	o := options.Defaults()
	o.RootfsPath, o.AutoRemove, o.MemoryMiB, o.CPUs = rootfs.Busybox(t), false, memoryMiB, 2
	id := boxes.ID(home, 1)
	_, err := e.Create(t.Context(), core.CreateRequest{ID: id, Options: o, Image: core.Image{Layers: []string{o.RootfsPath}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Remove(context.Background(), id, true); err != nil {
			t.Error(err)
		}
	})
	return id
}

// smallHogs fills more memory than its box has from processes that are smaller
// than init, and as dear to the kernel. It ends once each is full or dead, with exit code 3
// if one of them has died.
const smallHogs = `echo 0 >/proc/self/oom_score_adj; mkdir /tmp/done
for i in $(seq 40); do
	( (x=$(head -c 2000000 /dev/zero | tr '\0' x); touch /tmp/done/$i; sleep 1000; :); touch /tmp/died /tmp/done/$i ) &
done
until [ $(ls /tmp/done | wc -l) = 40 ]; do sleep 0.1; done; [ ! -e /tmp/died ] || exit 3`

// TestMemoryLimit uses up the memory of a box: that ends commands, and never
// the box.
func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	e := boxes.Open(t, home)
	box := createWith(t, e, home, 64)
	hog := options.Exec{Cmd: []string{"dd", "if=/dev/zero", "of=/dev/null", "bs=200M", "count=1"}}
	if _, status := boxes.Output(t, e, box, hog); status.Signal != 9 || status.Reason != api.ReasonOOMKilled {
		t.Errorf("a command of 200 MiB ended %+v, want it killed for want of memory", status)
	}
	if out, _ := boxes.Output(t, e, box, options.Exec{Cmd: []string{"echo", "alive"}}); out != "alive\n" {
		t.Errorf("after a large command the box says %q", out)
	}
	_, status := boxes.Output(t, e, box, options.Exec{Cmd: []string{"sh", "-c", smallHogs}})
	if status.Status == api.ExecSucceeded {
		t.Error("many small commands had room, want some of them killed")
	}
	boxes.Output(t, e, box, options.Exec{Cmd: []string{"sh", "-c", "kill -9 -1"}})
	if out, _ := boxes.Output(t, e, box, options.Exec{Cmd: []string{"echo", "alive"}}); out != "alive\n" {
		t.Errorf("after many small commands the box says %q", out)
	}
}

// TestProcessLimit has a command take all processes of its box. Others can't
// be started then, also many at once; init lives and can end it.
func TestProcessLimit(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	e := boxes.Open(t, home)
	box, err := core.New(core.Config{Engine: e}).Get(t.Context(), createWith(t, e, home, 1024))
	if err != nil {
		t.Fatal(err)
	}
	x, err := box.Exec(t.Context(), options.Exec{Cmd: []string{"sh", "-c", "(while :; do sleep 1000 & done); echo full; read line"}, Stdin: true})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	canceled := func(_ bool, p []byte) error {
		if !strings.Contains(string(p), "full") {
			return nil
		}
		takeLastProcesses(t, box)
		if n := turnedAway(t, e, box.ID(), 100); n < 100 {
			t.Errorf("%d of 100 commands above the limit were refused", n)
		}
		return x.Cancel(t.Context(), time.Millisecond)
	}
	status, err := x.Stream(t.Context(), make([]byte, core.OutputBuffer), canceled)
	if err != nil || status.Status != api.ExecCanceled {
		t.Errorf("got %+v, %v, want a canceled command", status, err)
	}
	awaitOutput(t, e, box.ID(), "alive\n", "echo", "alive")
}

var errStays = errors.New("the command stays")

// takeLastProcesses starts commands that stay until one is refused, for example
// in the place of the shell that filled the box.
func takeLastProcesses(t *testing.T, box *core.Box) {
	t.Helper()
	for range 100 {
		x, err := box.Exec(t.Context(), options.Exec{Cmd: []string{"sh", "-c", "echo stays; exec sleep 1000"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = x.Close() })
		stays := func(stderr bool, _ []byte) error {
			if stderr { // why it is refused
				return nil
			}
			return errStays
		}
		if _, err := x.Stream(t.Context(), make([]byte, core.OutputBuffer), stays); !errors.Is(err, errStays) {
			return
		}
	}
	t.Error("a box without a free process starts 100 commands")
}

// turnedAway counts those of n commands at once for which there is no process.
func turnedAway(t *testing.T, e core.Engine, box string, n int) int {
	t.Helper()
	var count atomic.Int64
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			if _, status := boxes.Output(t, e, box, options.Exec{Cmd: []string{"true"}}); status.ExitCode == 126 {
				count.Add(1)
			}
		})
	}
	wg.Wait()
	return int(count.Load())
}

// awaitOutput waits until a command says what it should.
func awaitOutput(t *testing.T, e core.Engine, box, want string, cmd ...string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		out, status := boxes.Output(t, e, box, options.Exec{Cmd: cmd})
		if out == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%v says %q and ends %+v", cmd, out, status)
		}
	}
}

// TestLockedMemory wants boxes to lock as much memory as ever, whatever the limit of the
// shim has become: on cgroup2 it goes away with the first box.
func TestLockedMemory(t *testing.T) {
	t.Parallel()
	first := boxes.New(t)
	shim := boxes.ShimPID(t, first.Home)
	var own unix.Rlimit
	if err := unix.Prlimit(shim, unix.RLIMIT_MEMLOCK, nil, &own); err != nil {
		t.Fatal(err)
	}
	own.Cur = 1 << 20 // not all of what a box may have, as anyone may set it
	if err := unix.Prlimit(shim, unix.RLIMIT_MEMLOCK, &own, nil); err != nil {
		t.Fatal(err)
	}
	second := createWith(t, first.Engine, first.Home, 64)
	out, _ := boxes.Output(t, first.Engine, second, options.Exec{Cmd: []string{"sh", "-c", "ulimit -S -l; ulimit -H -l"}})
	if most := strconv.FormatUint(min(8192, own.Max>>10), 10); out != most+"\n"+most+"\n" {
		t.Errorf("it may lock, in KiB: %q, want %s", out, most)
	}
}

// TestShimGroup wants a shim to leave every cgroup of its starter. That it
// leaves none of its own behind, the check after all tests finds out.
func TestShimGroup(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	e := boxes.Open(t, home)
	createWith(t, e, home, 64)
	groups, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(boxes.ShimPID(t, home)), "cgroup"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(groups)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if hasHierarchy(fields[1]) && !strings.HasPrefix(fields[2], "/sandbox/shim-") {
			t.Errorf("the shim is in %s", line)
		}
	}
}

// hasHierarchy tells whether the hierarchy of these controllers is: those of
// cgroup2 have no name in the list.
func hasHierarchy(controllers string) bool {
	places := []string{strings.TrimPrefix(controllers, "name=")}
	if controllers == "" {
		places = []string{".", "unified"}
	}
	for _, place := range places {
		if _, err := os.Stat(filepath.Join("/sys/fs/cgroup", place, "cgroup.procs")); err == nil {
			return true
		}
	}
	return false
}
