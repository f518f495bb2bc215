package attack_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"sandbox/api"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/test/boxes"
)

// A box out of memory loses the command that took it, and nothing else.
func TestMemoryHog(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	for range 3 {
		_, s := b.Output(t, options.Exec{Cmd: []string{"dd", "if=/dev/zero", "of=/dev/null", "bs=200M", "count=1"}})
		if s.Signal != 9 || s.Reason != api.ReasonOOMKilled {
			t.Errorf("ended %+v, want it killed", s)
		}
		b.Lives(t)
	}
}

// A box out of processes answers all the same, recovers when they go, and does
// not touch another.
func TestProcessHog(t *testing.T) {
	t.Parallel()
	b := boxes.New(t, func(o *options.Box) { o.MemoryMiB = 2048 })
	other := boxes.New(t)
	p, err := b.Engine.Exec(t.Context(), b.ID, options.Exec{Cmd: []string{"sh", "-c", "while :; do (read x <&3) 2>/dev/null & done 3<&0"}, Stdin: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	// A shell that can't fork ends, and so leaves room for one.
	boxes.Await(t, "all processes", func() bool { return pids(t, b.Slot(t)) >= options.DefaultProcesses-4 })
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			_, s := b.Output(t, options.Exec{Cmd: []string{"true"}})
			if s.Status != api.ExecSucceeded && s.Reason != api.ReasonNotExecutable {
				t.Errorf("a command at the limit ended %+v", s)
			}
		})
	}
	wg.Wait()
	other.Lives(t)
	boxes.Await(t, "few processes", func() bool {
		b.Output(t, options.Exec{Cmd: []string{"sh", "-c", "kill -9 -1"}})
		return pids(t, b.Slot(t)) < 100
	})
	b.Lives(t)
}

// A fork bomb ends with its box, from outside.
func TestForkBomb(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	p, err := b.Engine.Exec(t.Context(), b.ID, options.Exec{Cmd: []string{"sh", "-c", "bomb() { bomb | bomb & }; bomb; wait"}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	boxes.Await(t, "the bomb", func() bool { return pids(t, b.Slot(t)) > 50 })
	if _, err := b.Engine.Stop(t.Context(), b.ID, 0); err != nil {
		t.Error(err)
	}
}

// pids counts the processes and threads of a box's commands.
func pids(t *testing.T, slot string) int {
	t.Helper()
	for _, dir := range []string{"pids/sandbox/" + slot + "/execs", "sandbox/" + slot + "/execs"} {
		if b, err := os.ReadFile(filepath.Join("/sys/fs/cgroup", dir, "pids.current")); err == nil {
			n, _ := strconv.Atoi(strings.TrimSpace(string(b)))
			return n
		}
	}
	t.Fatal("the box has no count of processes")
	return 0
}

// More execs than init remembers leave nothing in it.
func TestManyExecsLeaveNothing(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	run := func(n int) {
		for range n {
			if out, s := b.Output(t, options.Exec{Cmd: []string{"echo", "x"}}); out != "x\n" || s.Status != api.ExecSucceeded {
				t.Fatalf("got %q, %+v", out, s)
			}
		}
	}
	run(10)
	before := descriptors(t, b)
	run(1100)
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			if p, err := b.Engine.Exec(t.Context(), b.ID, options.Exec{Cmd: []string{"true"}}); err != nil {
				t.Error(err)
			} else if err := p.Release(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	defer func() {
		if t.Failed() { // which ones are left says why
			dir := filepath.Join("/proc", strconv.Itoa(b.PID), "fd")
			fds, _ := os.ReadDir(dir)
			for _, fd := range fds {
				to, _ := os.Readlink(filepath.Join(dir, fd.Name()))
				t.Log(fd.Name(), to)
			}
			execs, err := b.Engine.Execs(t.Context(), b.ID)
			for _, e := range execs[:min(len(execs), 210)] {
				if e.FinishedAt == nil {
					t.Logf("%+v %v", e, err)
				}
			}
		}
	}()
	boxes.Await(t, "init's descriptors back", func() bool { return descriptors(t, b) <= before+4 })
	b.Lives(t)
}

// descriptors counts those of the box's init, from outside.
func descriptors(t *testing.T, b *boxes.Box) int {
	t.Helper()
	fds, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(b.PID), "fd"))
	if err != nil {
		t.Fatal(err)
	}
	return len(fds)
}

// One box that opens terminals without end leaves those of others, and hears
// that it has none left itself.
func TestTerminalHog(t *testing.T) {
	t.Parallel()
	b, other := boxes.New(t), boxes.New(t)
	p, err := b.Engine.Exec(t.Context(), b.ID, options.Exec{
		Cmd: []string{"sh", "-c", "for n in $(seq 100); do sleep 1000 3<>/dev/ptmx & done 2>/dev/null; wait"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	// The terminals are counted without one of our own, which would take a place.
	boxes.Await(t, "all 64 terminals, and ptmx", func() bool { return b.Sh(t, "ls /dev/pts | wc -l") == "65\n" })
	_, err = b.Engine.Exec(t.Context(), b.ID, options.Exec{Cmd: []string{"true"}, TTY: true})
	if !fault.Is(err, fault.ResourceExhausted) || !strings.Contains(err.Error(), "no terminal left") {
		t.Errorf("got %v", err)
	}
	if _, s := other.Output(t, options.Exec{Cmd: []string{"true"}, TTY: true}); s.Status != api.ExecSucceeded {
		t.Errorf("a terminal in another box: %+v", s)
	}
}
