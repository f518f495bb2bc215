package process_test

import (
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/process"
)

func TestEnded(t *testing.T) {
	t.Parallel()
	self, err := process.Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("cat") // runs until its input ends
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	child, err := process.Of(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(input.Close(), cmd.Wait()); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		p    process.Identity
		want bool
	}{
		"this process":                 {self, false},
		"no process":                   {process.Identity{}, true},
		"a child that was reaped":      {child, true},
		"the number of an earlier one": {process.Identity{PID: self.PID, Start: self.Start - 1}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tt.p.Ended(); got != tt.want {
				t.Errorf("Ended() = %v, want %v", got, tt.want)
			}
			h, err := process.Open(tt.p)
			if err == nil {
				_ = h.Close()
			}
			if errors.Is(err, os.ErrProcessDone) != tt.want {
				t.Errorf("Open: %v, want done: %v", err, tt.want)
			}
		})
	}
}

// TestEndedIsNotGuessed checks that a process that is out of descriptors takes
// no other process for ended. A child process runs out of them, since all tests
// of this process share its descriptors.
func TestEndedIsNotGuessed(t *testing.T) {
	t.Parallel()
	const mark = "PROCESS_TEST_SHORT"
	if os.Getenv(mark) == "" {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestEndedIsNotGuessed$")
		cmd.Env = append(os.Environ(), mark+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	parent, err := process.Of(os.Getppid())
	if err != nil {
		t.Fatal(err)
	}
	none := unix.Rlimit{Cur: 0, Max: 0}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	if parent.Ended() {
		t.Error("without descriptors a process that runs is taken for dead")
	}
	if _, err := process.Open(parent); err == nil || errors.Is(err, os.ErrProcessDone) {
		t.Errorf("Open without descriptors: %v, want an error that says nothing of the process", err)
	}
	// Those who wait for its end try again and again, and must not do so all the time.
	const wait = 50 * time.Millisecond
	begun := time.Now()
	if ended, took := parent.EndsWithin(wait), time.Since(begun); ended || took < wait {
		t.Errorf("EndsWithin without descriptors: %v after %v, want false after %v", ended, took, wait)
	}
}

// TestClosedHandle wants a closed handle to reach no process: its descriptor may be another
// file's.
func TestClosedHandle(t *testing.T) {
	t.Parallel()
	h, err := process.Hold(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	for name, use := range map[string]func() error{"Kill": h.Kill, "JoinNetwork": h.JoinNetwork} {
		if err := use(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s: %v, want %v", name, err, os.ErrClosed)
		}
	}
}
