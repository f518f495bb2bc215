package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/engine"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/test/boxes"
	"sandbox/test/rootfs"
)

// start starts a script in a box and waits for the first line that it prints.
func start(t *testing.T, b *boxes.Box, o options.Exec) *core.Process {
	t.Helper()
	p, err := b.Engine.Exec(t.Context(), b.ID, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Release() })
	awaitLine(t, p)
	return p
}

// awaitLine waits for the next line that a command prints.
func awaitLine(t *testing.T, p *core.Process) {
	t.Helper()
	line := make([]byte, 16)
	boxes.Await(t, "a line of a command", func() bool {
		n, err := p.Stdout.Read(line)
		return err == nil && n > 0
	})
}

func spin(script string) options.Exec {
	return options.Exec{Cmd: []string{"sh", "-c", script + "; echo ready; while :; do :; done"}}
}

// paused pauses the box and wants it to be so.
func paused(t *testing.T, b *boxes.Box) core.Record {
	t.Helper()
	rec, err := b.Engine.Pause(t.Context(), b.ID, false)
	if err != nil || rec.Status != api.Paused || rec.PausedAt == nil || rec.PID != b.PID {
		t.Fatalf("a pause: %+v, %v", rec, err)
	}
	return rec
}

func resumed(t *testing.T, b *boxes.Box) {
	t.Helper()
	rec, err := b.Engine.Resume(t.Context(), b.ID)
	if err != nil || rec.Status != api.Running || rec.PausedAt != nil || rec.PID != b.PID {
		t.Fatalf("a resume: %+v, %v", rec, err)
	}
}

// A pause that comes while commands are started and files are moved lets each of them begin
// before it, or refuses it: none is begun in the box that stands still, where it would keep
// init from all other work, and from the resume.
func TestPauseWhileCommandsStart(t *testing.T) {
	t.Parallel()
	var busy sync.WaitGroup
	t.Cleanup(busy.Wait) // behind the removal of the box, which ends all that waits for it
	b := boxes.New(t)
	box, err := core.New(core.Config{Engine: b.Engine}).Get(t.Context(), b.ID)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // else an init that is kept so keeps the test
	defer cancel()
	begin := map[string]func() error{
		"a command": func() error {
			x, err := box.Exec(ctx, options.Exec{Cmd: []string{"true"}})
			if err != nil {
				return err
			}
			defer x.Close()
			_, err = x.Stream(ctx, make([]byte, core.OutputBuffer), func(bool, []byte) error { return nil })
			return err
		},
		"a file": func() error {
			_, err := box.StatFile(ctx, options.StatFile{Path: "/bin"})
			return err
		},
	}
	begun := map[string]*atomic.Int32{}
	for name, do := range begin {
		n := new(atomic.Int32)
		begun[name] = n
		for range 3 {
			busy.Go(func() {
				for ctx.Err() == nil {
					err := do()
					if err == nil {
						n.Add(1)
					} else if ctx.Err() == nil && !fault.Is(err, fault.InvalidState) {
						t.Errorf("%s: %v", name, err)
						return
					}
				}
			})
		}
	}
	for range 50 {
		paused(t, b)
		if _, err := box.Execs(ctx); err != nil {
			t.Fatal(err)
		}
		resumed(t, b)
	}
	for name, n := range begun {
		before := n.Load()
		boxes.Await(t, name+" behind the last pause", func() bool { return n.Load() > before })
	}
}

// The whole box, its init too, uses less than 5 ms of CPU time a second while it is
// paused, whatever its commands do. test/attack wants none at all of the commands.
func TestPausedBoxRests(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	for range 4 {
		start(t, b, spin("true"))
	}
	paused(t, b)
	before := cpuTime(t, b.Slot(t))
	time.Sleep(time.Second) // what is measured
	used := cpuTime(t, b.Slot(t)) - before
	t.Logf("a paused box used %v of CPU time in a second", used)
	if used > 5*time.Millisecond {
		t.Errorf("a paused box used %v in a second", used)
	}
	resumed(t, b)
	b.Lives(t)
}

// cpuTime returns what the processes of a box have used.
func cpuTime(t *testing.T, slot string) time.Duration {
	t.Helper()
	for file, unit := range map[string]time.Duration{"cpuacct/sandbox/" + slot + "/cpuacct.usage": 1, "sandbox/" + slot + "/cpu.stat": time.Microsecond} {
		if text, err := os.ReadFile(filepath.Join("/sys/fs/cgroup", file)); err == nil {
			n, _ := strconv.ParseInt(strings.Fields(strings.TrimPrefix(string(text), "usage_usec "))[0], 10, 64)
			return time.Duration(n) * unit
		}
	}
	t.Fatal("the box has no count of CPU time")
	return 0
}

// The time of a pause does not count for the timeout of a command, nor for the grace
// of its end.
func TestPauseStopsClocks(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	const timeout, pause = 4 * time.Second, 5 * time.Second // a busy host may take a second to come to the trap
	o := spin("trap 'echo term' TERM")
	o.Timeout = timeout
	p := start(t, b, o)
	var still time.Duration
	for _, warned := range []bool{false, true} { // once before the timeout, once in the 2 s that a timeout leaves
		if warned {
			awaitLine(t, p) // SIGTERM has come
		}
		paused(t, b)
		at := time.Now()
		time.Sleep(pause) // longer than what is left
		still += time.Since(at)
		if rec, err := b.Engine.FindExec(t.Context(), b.ID, p.Record.ID); err != nil || rec.Status != api.ExecRunning {
			t.Errorf("in the pause: %+v, %v", rec, err)
		}
		resumed(t, b)
	}
	rec, err := b.Engine.AwaitExec(t.Context(), b.ID, p.Record.ID)
	if err != nil || rec.Status != api.ExecTimedOut || *rec.Signal != 9 {
		t.Fatalf("the end: %+v, %v", rec, err)
	}
	if took, least := rec.FinishedAt.Sub(rec.CreatedAt), timeout+2*time.Second+still; took < least {
		t.Errorf("the command had %v, of which it stood still for %v: want at least %v", took, still, least)
	}
}

// A paused box outlives its shim, and the next one knows that it is paused. A shim
// that is killed while it pauses or resumes a box leaves it as its record says.
func TestPauseOutlivesTheShim(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	start(t, b, spin("true"))
	before := paused(t, b)
	kill(t, b.Home)
	if rec, err := b.Engine.Get(t.Context(), b.ID); err != nil || rec.Status != api.Paused {
		t.Errorf("without a shim: %+v, %v", rec, err)
	}
	if err := b.Engine.Flush(t.Context()); err != nil { // starts the next one
		t.Fatal(err)
	}
	if _, err := b.Engine.Pause(t.Context(), b.ID, false); !fault.Is(err, fault.InvalidState) {
		t.Errorf("a pause by the next shim: %v", err)
	}
	if rec, err := b.Engine.Get(t.Context(), b.ID); err != nil || !rec.PausedAt.Equal(*before.PausedAt) {
		t.Errorf("with the next shim: %+v, %v", rec, err)
	}
	resumed(t, b)
	for i := range 20 {
		rec, err := b.Engine.Get(t.Context(), b.ID)
		if err != nil {
			t.Fatal(err)
		}
		turn := func() error { _, err := b.Engine.Pause(t.Context(), b.ID, false); return err }
		if rec.Status == api.Paused {
			turn = func() error { _, err := b.Engine.Resume(t.Context(), b.ID); return err }
		}
		done := make(chan error)
		go func() { done <- turn() }()
		time.Sleep(time.Duration(i) * 200 * time.Microsecond) // where in the pause the kill comes
		kill(t, b.Home)
		if err := <-done; err != nil && !fault.Is(err, fault.Engine) {
			t.Errorf("killed after %d ms/5: %v", i, err)
		}
		asRecorded(t, b)
	}
}

// kill kills the shim of a home.
func kill(t *testing.T, home string) {
	t.Helper()
	if err := syscall.Kill(boxes.ShimPID(t, home), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// asRecorded starts the next shim, and wants the box to do as its record says.
func asRecorded(t *testing.T, b *boxes.Box) {
	t.Helper()
	if err := b.Engine.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	boxes.Await(t, "a box that does as its record says", func() bool {
		rec, err := b.Engine.Get(t.Context(), b.ID)
		if err != nil {
			t.Fatal(err)
		}
		p, err := b.Engine.Exec(t.Context(), b.ID, options.Exec{Cmd: []string{"true"}})
		if err == nil {
			_ = p.Release()
		}
		return (err == nil) == (rec.Status == api.Running)
	})
}

// A process that waits for a disk can't be paused. The pause fails in bounded time
// and says why, and the box runs on; once the disk answers it can be paused.
func TestPauseOfAStuckProcess(t *testing.T) {
	t.Parallel()
	disk := slowDisk(t)
	b := boxes.New(t, func(o *options.Box) { o.Volumes = []options.Volume{{HostPath: disk, GuestPath: "/disk"}} })
	start(t, b, spin("true"))
	thaw := freezeDisk(t, disk)
	p, err := b.Engine.Exec(t.Context(), b.ID, options.Exec{Cmd: []string{"touch", "/disk/file"}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	boxes.Await(t, "a process that waits for the disk", func() bool { return waitsForDisk(t, b, "touch") })
	if _, err := b.Engine.Pause(t.Context(), b.ID, false); !fault.Is(err, fault.Timeout) || !strings.Contains(err.Error(), "disk") {
		t.Errorf("a pause of a box with a stuck process: %v", err)
	}
	if rec, err := b.Engine.Get(t.Context(), b.ID); err != nil || rec.Status != api.Running || rec.PausedAt != nil {
		t.Errorf("after it: %+v, %v", rec, err)
	}
	b.Lives(t)
	thaw()
	if rec, err := b.Engine.AwaitExec(t.Context(), b.ID, p.Record.ID); err != nil || rec.Status != api.ExecSucceeded {
		t.Errorf("the stuck command: %+v, %v", rec, err)
	}
	paused(t, b)
	resumed(t, b)
}

// slowDisk returns the mount point of a disk of its own.
func slowDisk(t *testing.T) string {
	t.Helper()
	image, dir := filepath.Join(t.TempDir(), "disk"), t.TempDir()
	for _, cmd := range [][]string{{"truncate", "-s", "16M", image}, {"mkfs.ext4", "-q", image}, {"mount", "-o", "loop", image, dir}} {
		if out, err := exec.Command(cmd[0], cmd[1:]...).CombinedOutput(); err != nil { //nolint:gosec // as above
			t.Fatalf("%v: %v\n%s", cmd, err, out)
		}
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// freezeDisk has a file system answer nobody who writes to it, until thaw is called.
func freezeDisk(t *testing.T, dir string) (thaw func()) {
	t.Helper()
	const fifreeze, fithaw = 0xc0045877, 0xc0045878
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetInt(int(f.Fd()), fifreeze, 0); err != nil {
		t.Fatal(err)
	}
	frozen := true
	thaw = func() {
		if frozen {
			frozen = false
			if err := errors.Join(unix.IoctlSetInt(int(f.Fd()), fithaw, 0), f.Close()); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(thaw)
	return thaw
}

// waitsForDisk reports whether a program of the box waits in the kernel for a frozen
// disk. The state D alone does not say so: a program is in it for a moment, too, when it
// is read from the host's disk.
func waitsForDisk(t *testing.T, b *boxes.Box, program string) bool {
	t.Helper()
	space, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", b.PID))
	if err != nil {
		t.Fatal(err)
	}
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		name, _ := os.ReadFile(dir + "/comm") // it may have ended
		where, _ := os.ReadFile(dir + "/wchan")
		if in, _ := os.Readlink(dir + "/ns/pid"); in == space && string(name) == program+"\n" && string(where) == "percpu_rwsem_wait" {
			return true
		}
	}
	return false
}

// With reclaim, a paused box gives back the memory that its files take.
func TestPauseReclaims(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	b.Sh(t, "head -c 16m /dev/zero >/big; sync; cat /big >/dev/null")
	before, err := b.Engine.Usage(t.Context(), b.ID)
	if err != nil || before.MemoryBytes < 16<<20 {
		t.Fatalf("before: %+v, %v", before, err)
	}
	if rec, err := b.Engine.Pause(t.Context(), b.ID, true); err != nil || rec.Status != api.Paused {
		t.Fatalf("a pause: %+v, %v", rec, err)
	}
	after, err := b.Engine.Usage(t.Context(), b.ID)
	if err != nil || after.MemoryBytes > before.MemoryBytes-8<<20 {
		t.Errorf("of %d bytes, %d are left: %v", before.MemoryBytes, after.MemoryBytes, err)
	}
	resumed(t, b)
	if out := b.Sh(t, "head -c 3 /big | wc -c"); out != "3\n" {
		t.Errorf("the file has %q bytes", out)
	}
}

// The end of a paused box's init is noted, and nothing of the box is left.
func TestInitOfAPausedBoxKilled(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	e := boxes.OpenConfig(t, engine.Config{Home: home, Cached: true})
	rec, err := boxes.Create(t.Context(), e, boxes.ID(home, 1), rootfs.Busybox(t))
	if err != nil {
		t.Fatal(err)
	}
	b := &boxes.Box{Record: rec, Engine: e, Home: home}
	start(t, b, spin("true"))
	paused(t, b)
	if err := syscall.Kill(rec.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if os.Getenv("PURE_V1") == "" { // the v1 freezer holds the dead too, until the box is removed
		boxes.AwaitState(t, e, rec.ID, api.Failed)
	}
	if err := e.Remove(t.Context(), rec.ID, true); err != nil {
		t.Error(err)
	}
}
