package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"sandbox/core"
	"sandbox/core/engine"
	"sandbox/core/options"
	"sandbox/test/rootfs"
)

// box is a box to be attacked from inside.
type box struct {
	core.Record
	e    *engine.Client
	home string
	root string // its RootfsPath
}

// newBox makes a box that ends with the test.
func newBox(t *testing.T, change ...func(*options.Box)) *box {
	t.Helper()
	b := &box{home: t.TempDir(), root: rootfs.Busybox(t)}
	b.e = openAt(t, b.home)
	b.create(t, change...)
	return b
}

// boxes counts the boxes of newBox. All homes of a host share its cgroups, and
// another suite may run beside this one.
var boxes atomic.Int32

func init() { boxes.Store(rand.Int32N(1 << 30)) }

func (b *box) create(t *testing.T, change ...func(*options.Box)) {
	t.Helper()
	o := options.Defaults()
	o.RootfsPath, o.CPUs, o.MemoryMiB, o.AutoRemove = b.root, 1, 64, false
	for _, c := range change {
		c(&o)
	}
	var err error
	b.Record, err = b.e.Create(t.Context(), core.CreateRequest{ID: boxID(b.home, int(boxes.Add(1))), Options: o, Image: core.Image{Layers: []string{b.root}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.e.Remove(context.Background(), b.ID, true); err != nil {
			t.Error(err)
		}
	})
}

// sh runs a script in the box as its root.
func (b *box) sh(t *testing.T, script string) string {
	t.Helper()
	out, _ := output(t, b.e, b.ID, options.Exec{Cmd: []string{"sh", "-c", script}})
	return out
}

// lives wants the box to answer, with the init that it began with.
func (b *box) lives(t *testing.T) {
	t.Helper()
	if out := b.sh(t, "echo lives"); out != "lives\n" {
		t.Errorf("the box answers %q", out)
	}
	if rec, err := b.e.Get(t.Context(), b.ID); err != nil || rec.PID != b.PID || rec.State != core.Running {
		t.Errorf("the box is %+v, %v", rec, err)
	}
}

// No signal from inside ends init, neither one to the process nor one to a
// thread of it, nor one to all processes.
func TestSignalsFromInside(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	out := b.sh(t, `for s in $(seq 1 64); do kill -$s 1 || echo "$s refused"; done
		for t in /proc/1/task/*; do for s in $(seq 1 64); do kill -$s ${t##*/}; done; done; echo sent`)
	if !strings.HasSuffix(out, "sent\n") { // before it: threads that have gone meanwhile
		t.Errorf("got %q", out)
	}
	b.lives(t)
	out, _ = output(t, b.e, b.ID, options.Exec{Cmd: []string{"grep", "-E", "Sig(Ign|Blk)", "/proc/self/status"}})
	if strings.Trim(out, "SigInBlk:\t\n0") != "" {
		t.Errorf("a command begins with signals ignored or blocked: %s", out)
	}
	for _, sig := range []int{1, 9, 15, 19} {
		b.sh(t, fmt.Sprintf("sleep 1000 & kill -%d -1", sig))
		b.lives(t)
	}
}

// What /proc tells of init is what it tells of everyone; the box's root sees
// nothing of its memory, descriptors, environment and namespaces, and writes to
// none of its files. Nor to any other of /proc and /sys.
func TestProcIsClosed(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	for _, name := range []string{
		"mem", "environ", "maps", "smaps", "pagemap", "auxv", "stack", "syscall", "personality", "io", "task/1/mem", "task/1/environ",
	} {
		if out := b.sh(t, "head -c 1 /proc/1/"+name+" 2>/dev/null | wc -c"); out != "0\n" {
			t.Errorf("/proc/1/%s can be read: %q", name, out)
		}
	}
	for _, name := range []string{"root", "cwd", "exe", "ns/user", "ns/mnt", "ns/net", "ns/pid", "task/1/root"} {
		if out := b.sh(t, "readlink /proc/1/"+name+"; cat /proc/1/"+name+"/etc/hostname"); !strings.Contains(out, "Permission denied") || strings.Contains(out, "busybox\n") {
			t.Errorf("/proc/1/%s can be followed: %q", name, out)
		}
	}
	for _, name := range []string{"fd", "fdinfo", "map_files", "task/1/fd"} {
		if out := b.sh(t, "ls /proc/1/"+name+" 2>/dev/null"); out != "" {
			t.Errorf("/proc/1/%s can be listed: %q", name, out)
		}
	}
	script := `writable() { while read -r f; do ( echo 1 >>"$f" ) 2>/dev/null && echo "$f"; done; }
		find /proc/1 /proc/sys /proc/irq /proc/bus /proc/fs /sys -type f 2>/dev/null | writable
		find /proc -maxdepth 1 -type f | writable`
	if out := b.sh(t, script); out != "" {
		t.Errorf("can be written:\n%.3000s", out)
	}
	b.lives(t)
}

// intruder builds the program that makes forbidden system calls.
func intruder(t *testing.T, root string) {
	t.Helper()
	build := exec.Command("go", "build", "-o", filepath.Join(root, "bin/intruder"), "./testdata/intruder")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// The system calls that lead out of a box, or to its init, are refused.
func TestForbiddenCalls(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	intruder(t, b.root)
	out, status := output(t, b.e, b.ID, options.Exec{Cmd: []string{"intruder"}})
	if status.State != core.ExecSucceeded {
		t.Errorf("ended %+v", status)
	}
	refusal := []string{"EPERM", "EACCES", "ENOSYS", "EAFNOSUPPORT", "ENOSPC"}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for _, line := range lines {
		if _, errno, _ := strings.Cut(line, ": "); !slices.Contains(refusal, errno) {
			t.Errorf("not refused: %s", line)
		}
	}
	if len(lines) < 30 {
		t.Errorf("only %d calls were made: %q", len(lines), out)
	}
	b.lives(t)
}
