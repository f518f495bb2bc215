package core_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// stream runs the command of o until it ends.
func stream(t *testing.T, box *core.Box, o options.Exec) (string, api.ExitStatus) {
	t.Helper()
	e, err := box.Exec(t.Context(), o)
	if err != nil {
		t.Error(err)
		return "", api.ExitStatus{}
	}
	defer e.Close()
	var out strings.Builder
	status, err := e.Stream(t.Context(), make([]byte, core.OutputBuffer), func(_ bool, p []byte) error {
		out.Write(p)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return out.String(), status
}

// TestStreamThread tests that sink runs on the caller's thread, because
// callbacks into C depend on it.
func TestStreamThread(t *testing.T) {
	t.Parallel()
	r, _ := host(t)
	e, err := create(t, r).Exec(t.Context(), options.Exec{Cmd: []string{"sh", "-c", "for i in 1 2 3; do echo $i; sleep 0.01; done"}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	caller := unix.Gettid()
	_, err = e.Stream(t.Context(), make([]byte, 16), func(bool, []byte) error {
		if got := unix.Gettid(); got != caller {
			t.Errorf("on thread %d, called from %d", got, caller)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestSinkFails tests that Stream returns the sink's own error, and at once.
func TestSinkFails(t *testing.T) {
	t.Parallel()
	r, _ := host(t)
	e, err := create(t, r).Exec(t.Context(), options.Exec{Cmd: []string{"sh", "-c", "echo hi; sleep 1000"}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	full := errors.New("full")
	if _, err := e.Stream(t.Context(), make([]byte, 16), func(bool, []byte) error { return full }); !errors.Is(err, full) {
		t.Errorf("got %v, want %v", err, full)
	}
}

// TestStreamCanceled tests that a canceled Stream ends while the command goes
// on.
func TestStreamCanceled(t *testing.T) {
	t.Parallel()
	r, _ := host(t)
	file := t.TempDir() + "/on"
	e, err := create(t, r).Exec(t.Context(), options.Exec{Cmd: []string{"sh", "-c", "echo hi; read line; echo on >" + file}, Stdin: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = e.Stream(ctx, make([]byte, 16), func(bool, []byte) error { cancel(); return nil })
	want(t, err, fault.Canceled)
	if _, err := e.Stdin().WriteString("\n"); err != nil {
		t.Error(err)
	}
	if _, err := e.Stream(t.Context(), make([]byte, 16), func(bool, []byte) error { return nil }); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(file); string(text) != "on\n" {
		t.Errorf("got %q, %v", text, err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// TestRun tests the result of a command, and that it ends with its context.
func TestRun(t *testing.T) {
	t.Parallel()
	r, _ := host(t)
	b := create(t, r)
	result, err := b.Run(t.Context(), "sh", "-c", "echo out; echo err >&2; exit 3")
	if err != nil || result.Stdout != "out\n" || result.Stderr != "err\n" || *result.ExitCode != 3 {
		t.Errorf("got %+v, %v", result, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = b.Run(ctx, "sleep", "1000")
	want(t, err, fault.Canceled)
	execs, err := b.Execs(t.Context())
	if err != nil || len(execs) == 0 || execs[0].Status != api.ExecCanceled {
		t.Errorf("got %+v, %v, want a command that was ended", execs, err)
	}
}

// TestSmallBuffer tests that every byte arrives, however small the buffer is.
func TestSmallBuffer(t *testing.T) {
	t.Parallel()
	r, _ := host(t)
	e, err := create(t, r).Exec(t.Context(), options.Exec{Cmd: []string{"head", "-c", "10000", "/dev/zero"}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	n := 0
	if _, err := e.Stream(t.Context(), make([]byte, 7), func(_ bool, p []byte) error { n += len(p); return nil }); err != nil || n != 10000 {
		t.Errorf("got %d bytes, %v", n, err)
	}
}

// TestSlowReader tests that what waits in the pipes when the command has ended
// is read to its end, however slow the reader is: the time after the end is a
// limit on waiting for more, and not on reading what is there.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	r, _ := host(t)
	e, err := create(t, r).Exec(t.Context(), options.Exec{Cmd: []string{"sh", "-c", "head -c 9000 /dev/zero; head -c 700 /dev/zero >&2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	got := map[bool]int{}
	slow := func(stderr bool, p []byte) error {
		time.Sleep(60 * time.Millisecond) // ten pieces take longer than output is waited for
		got[stderr] += len(p)
		return nil
	}
	if _, err := e.Stream(t.Context(), make([]byte, 1000), slow); err != nil || got[false] != 9000 || got[true] != 700 {
		t.Errorf("got %v bytes, %v; want 9000 of stdout and 700 of stderr", got, err)
	}
}

// TestBackgroundWriter tests that a reader ends although a child in the
// background holds the pipe open and writes without end.
func TestBackgroundWriter(t *testing.T) {
	t.Parallel()
	r, _ := host(t)
	e, err := create(t, r).Exec(t.Context(), options.Exec{Cmd: []string{"sh", "-c", "yes & echo $!"}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	n := 0
	if _, err := e.Stream(t.Context(), make([]byte, 4096), func(_ bool, p []byte) error { n += len(p); return nil }); err != nil || n == 0 {
		t.Errorf("%d bytes, %v", n, err)
	}
}
