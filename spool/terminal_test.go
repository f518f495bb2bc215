package spool

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"sandbox/core/fault"
	"sandbox/core/options"
)

// terminal starts a script on a terminal, once the returned function is called.
func (h *home) terminal(t *testing.T, script string) (*Exec, func()) {
	t.Helper()
	e := h.exec(t, options.Exec{Cmd: []string{"sh", "-c", "stty raw -echo; echo set; read x; " + script}, TTY: true})
	v, err := e.Events(0)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	got := &heard{}
	got.follow(t, v, func() bool { return got.out[Stdout].String() == "set\n" })
	command, err := e.running()
	if err != nil {
		t.Fatal(err)
	}
	return e, func() { _, _ = command.Stdin().WriteString("\n") }
}

// TestTerminalWaits checks that a terminal waits for the client that writes on it
// long before it waits for one that only watches, and that neither loses a byte.
func TestTerminalWaits(t *testing.T) {
	t.Parallel()
	h := newHome(t, 0)
	e, start := h.terminal(t, "head -c 3000000 /dev/zero; echo end")
	owner, err := e.AttachOwner()
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	start()
	for *e.Record().StdoutBytes < lead {
		if err := owner.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := *e.Record().StdoutBytes; n >= lead+shown {
		t.Errorf("%d bytes were read from a terminal that should wait", n)
	}
	watcher, err := e.Attach([2]int64{})
	if err != nil {
		t.Fatal(err)
	}
	if err := watcher.Writes(); !fault.Is(err, fault.InvalidState) {
		t.Error("beside its own client:", err)
	}
	if got := readAll(t, owner); len(got) != 3000008 || !strings.HasSuffix(got, "end\n") {
		t.Errorf("the client got %d bytes", len(got))
	}
	owner.Close()
	if err := watcher.Writes(); err != nil {
		t.Error("after its own client:", err)
	}
	watcher.Close()
	if got := attachAll(t, e, [2]int64{}); len(got[Stdout]) != 3000008 {
		t.Errorf("kept: %d bytes", len(got[Stdout]))
	}
}

// TestTerminalLeft wants a pump that waits for a terminal's client to be woken when that
// client has left its place, too: it may have looked between its end as a reader and that.
func TestTerminalLeft(t *testing.T) {
	t.Parallel()
	h := newHome(t, 0)
	e, start := h.terminal(t, "")
	defer start()
	owner, err := e.AttachOwner()
	if err != nil {
		t.Fatal(err)
	}
	<-e.room // what the attaching woke it for: this pump waits for the terminal itself
	if !owner.r.leave() {
		t.Fatal("it has left before")
	}
	<-e.room // here the pump sees that the place is taken, and waits again
	owner.free()
	select {
	case <-e.room:
	default:
		t.Error("the pump is not woken")
	}
}

// readAll reads to the end of the exec.
func readAll(t *testing.T, a *Attached) string {
	t.Helper()
	var all strings.Builder
	buf := make([]byte, 100_000)
	for {
		_, n, err := a.Next(buf)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(buf[:n])
		if ended, _ := a.Ended(); ended {
			return all.String()
		}
		if err := a.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTerminalDiskFull checks that what a terminal shows on a full disk is kept
// until there is room.
func TestTerminalDiskFull(t *testing.T) {
	t.Parallel()
	h := small(t)
	e, start := h.terminal(t, "head -c 300000 /dev/zero; echo end")
	v, err := e.Events(0)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	free := h.fill(t)
	start()
	time.Sleep(2 * pause) // it has met the full disk by now or will soon: both must end well
	free()
	got := &heard{}
	got.follow(t, v, func() bool { return false })
	got.wantRow(t, 1)
	if n := got.out[Stdout].Len(); n != 300008 {
		t.Errorf("got %d bytes", n)
	}
}

// TestTerminalDiskFullToTheEnd checks that the end of a command is published if
// what its terminal showed found no room.
func TestTerminalDiskFullToTheEnd(t *testing.T) {
	t.Parallel()
	h := small(t)
	h.timeout = 100 * time.Millisecond
	e, start := h.terminal(t, "head -c 9000 /dev/zero; exit 5") // the terminal holds that much
	free := h.fill(t)
	start()
	if err := e.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	free()
	if got := listen(t, e, 0); len(got.gaps) == 0 || *e.Record().ExitCode != 5 {
		t.Errorf("events %v, record %+v", got.kinds, e.Record())
	}
}

// TestPollerLate checks that what can be read is found also behind the time of
// until, for output that came late is read even then.
func TestPollerLate(t *testing.T) {
	t.Parallel()
	p, err := newPoller()
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if err := p.add(int(r.Fd()), source(Stdout)); err != nil {
		t.Fatal(err)
	}
	p.until(time.Unix(1, 0))
	if ready, err := p.wait(true); ready[Stdout] || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("nothing to read: %v, %v", ready, err)
	}
	if _, err := io.WriteString(w, "x"); err != nil {
		t.Fatal(err)
	}
	if ready, err := p.wait(true); !ready[Stdout] || err != nil {
		t.Errorf("something to read: %v, %v", ready, err)
	}
}
