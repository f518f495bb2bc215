package spool

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// small returns a home whose store is on a disk of its own of 1 MiB.
func small(t *testing.T) *home {
	t.Helper()
	h := newHome(t, 0)
	if err := os.Mkdir(h.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", h.dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal("mount a small disk (needs root): ", err)
	}
	t.Cleanup(func() {
		h.Close()
		if err := syscall.Unmount(h.dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return h
}

// fill takes all room on the disk. The function that it returns frees the room.
func (h *home) fill(t *testing.T) func() {
	t.Helper()
	name := filepath.Join(h.dir, ".filler")
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	return func() { _ = os.Remove(name) }
}

// gated starts a command that runs script once the returned function is called.
func (h *home) gated(t *testing.T, script string) (*Exec, func()) {
	t.Helper()
	e := h.exec(t, options.Exec{Cmd: []string{"sh", "-c", "read x; " + script}, Stdin: true})
	command, err := e.running()
	if err != nil {
		t.Fatal(err)
	}
	return e, func() { _ = command.CloseStdin(t.Context()) }
}

// TestDiskFull checks that on a full disk old output that nobody holds is
// dropped early, and that readers are told of it.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	h := small(t)
	e := h.sh(t, "head -c 3000000 /dev/zero; echo end")
	if err := e.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := listen(t, e, 0)
	if len(got.gaps) != 1 || !strings.HasSuffix(got.out[Stdout].String(), "end\n") {
		t.Errorf("gaps %+v, %d bytes", got.gaps, got.out[Stdout].Len())
	}
	if n := *e.Record().StdoutBytes; n != 3000004 {
		t.Errorf("counted %d", n)
	}
}

// complaints is where a store's log goes, for a test that waits for one.
type complaints chan struct{}

func (c complaints) Write(p []byte) (int, error) {
	select {
	case c <- struct{}{}:
	default:
	}
	return len(p), nil
}

// TestNothingDropped checks that output is not dropped where that frees nothing: a
// file that can't be opened for want of descriptors, or because of what is in its
// place, makes the command wait.
func TestNothingDropped(t *testing.T) {
	t.Parallel()
	h, complained := newHome(t, 0), make(complaints, 1)
	h.log = slog.New(slog.NewTextHandler(complained, nil))
	e := h.exec(t, options.Exec{Cmd: []string{"sh", "-c", "echo kept; read x; echo late >&2"}, Stdin: true})
	v, err := e.Events(0)
	if err != nil {
		t.Fatal(err)
	}
	early := &heard{}
	early.follow(t, v, func() bool { return len(early.seqs) == 1 })
	v.Close()
	command, err := e.running()
	if err != nil {
		t.Fatal(err)
	}
	inPlace := e.out.base + suffixes[Stderr]
	if err := os.Mkdir(inPlace, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := command.CloseStdin(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-complained
	if err := os.Remove(inPlace); err != nil {
		t.Fatal(err)
	}
	if got := listen(t, e, 0); len(got.gaps) != 0 || got.out[Stdout].String() != "kept\n" || got.out[Stderr].String() != "late\n" {
		t.Errorf("gaps %+v, stdout %q, stderr %q", got.gaps, &got.out[Stdout], &got.out[Stderr])
	}
}

// TestDiskFullAttached checks that an attached client loses nothing.
func TestDiskFullAttached(t *testing.T) {
	t.Parallel()
	h := small(t)
	e, start := h.gated(t, "head -c 3000000 /dev/zero; echo end")
	a, err := e.Attach([2]int64{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	start()
	sum, buf := 0, make([]byte, 256<<10)
	for {
		_, n, err := a.Next(buf)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
		if ended, lost := a.Ended(); ended {
			if lost {
				t.Error("the end is lost")
			}
			break
		}
		if n == 0 {
			if err := a.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if sum != 3000004 {
		t.Errorf("got %d bytes", sum)
	}
}

// TestDiskFullWaits checks that the command waits for room and loses nothing.
func TestDiskFullWaits(t *testing.T) {
	t.Parallel()
	h := small(t)
	e, start := h.gated(t, "head -c 300000 /dev/zero; echo end")
	free := h.fill(t)
	start()
	v, err := e.Events(0)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	time.Sleep(2 * pause) // it has met the full disk by now or will soon: both must end well
	if rec := e.Record(); rec.Status != api.ExecRunning || *rec.StdoutBytes > 1<<20 {
		t.Errorf("record %+v", rec)
	}
	if _, err := h.Start(mustExec(t, h), false); !fault.Is(err, fault.Storage) {
		t.Error("a new exec on a full disk:", err)
	}
	free()
	got := &heard{}
	got.follow(t, v, func() bool { return false })
	got.wantRow(t, 1)
	if n := got.out[Stdout].Len(); n != 300004 {
		t.Errorf("got %d bytes", n)
	}
}

func mustExec(t *testing.T, h *home) *core.Exec {
	t.Helper()
	x, err := h.box.Exec(t.Context(), options.Exec{Cmd: []string{"sleep", "100"}})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestDiskFullToTheEnd checks that the end of a command is published if its
// output found no room, with a gap in place of that output.
func TestDiskFullToTheEnd(t *testing.T) {
	t.Parallel()
	h := small(t)
	h.timeout = 100 * time.Millisecond
	e, start := h.gated(t, "echo lost; exit 5")
	free := h.fill(t)
	start()
	if err := e.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	free()
	got := listen(t, e, 0)
	if len(got.kinds) != 2 || got.kinds[0] != Gap || got.kinds[1] != Exit || got.seqs[1] != 2 {
		t.Errorf("events %v %v", got.kinds, got.seqs)
	}
	if rec := e.Record(); *rec.ExitCode != 5 {
		t.Errorf("record %+v", rec)
	}
}
