package link_test

import (
	"errors"
	"io"
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/wire"
)

func read(t testing.TB, f *os.File, n int) []byte {
	t.Helper()
	b := make([]byte, n)
	if _, err := io.ReadFull(f, b); err != nil {
		t.Fatal(err)
	}
	return b
}

func id(c *caller) wire.Attach { return wire.Attach{ID: c.exec.ID} }

// TestDetach checks that another caller gets what the one before had not read.
func TestDetach(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.host()
	const size = 1 << 20
	want, errs := noise(1, size), noise(2, size)
	c := start(t, h, write(size, 1))
	at := 0
	for _, n := range []int{0, 1, 100_000, 300_000} {
		same(t, "stdout", read(t, c.out, n), want[at:at+n])
		at += n
		c.leave(wire.TypeDetach)
		c = attach(t, h, id(c))
		if c.exec.From != (wire.Position{Stdout: int64(at)}) || c.exec.Streams.Output != int64(at) {
			t.Fatalf("goes on from %+v with %+v, want %d", c.exec.From, c.exec.Streams, at)
		}
	}
	out, got := c.output()
	same(t, "stdout", out, want[at:])
	same(t, "stderr", got, errs)
	c.exit()
	c.leave(wire.TypeDetach)
	c = attach(t, h, id(c)) // after the end of all
	out, got = c.output()
	same(t, "stdout", out, nil)
	same(t, "stderr", got, nil)
	c.exit()
	c.leave(wire.TypeRelease)
	w.init.got(wire.TypeRelease, 1)
}

// TestTakeOver checks that another host end continues an exec whose owner was killed,
// from where it says that it has the output.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const size = 3 << 20
	const most = 1<<20 + 1<<19 + 64<<10 // that the box end holds: its window, and its tail
	want, errs := noise(1, size), noise(2, size)
	for name, tt := range map[string]struct{ read, have, from int64 }{
		"has less than it took":  {500_000, 500_000 - 60_000, 500_000 - 60_000},
		"has what it read":       {500_000, 500_000, 500_000},
		"lost too much":          {1_900_000, 10, -1},
		"claims more than there": {10, 1 << 40, -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old := w.host()
			c := start(t, old, write(size, 1))
			read(t, c.out, int(tt.read))
			begun := time.Now()
			_ = old.Close()
			if _, err := c.conn.Recv(); !errors.Is(err, io.EOF) {
				t.Errorf("the old caller sees %v", err)
			}
			c.close()
			r := id(c)
			r.Have = &wire.Position{Stdout: tt.have}
			c = attachOnceCut(t, w.host(), r)
			if took := time.Since(begun); took < 1900*time.Millisecond {
				t.Errorf("taken over after %v", took)
			}
			from := c.exec.From.Stdout
			if tt.from >= 0 && from != tt.from {
				t.Errorf("goes on from %d, want %d", from, tt.from)
			}
			if tt.from < 0 && tt.have < from && from < tt.read-most {
				t.Errorf("goes on from %d, far from the %d that were read", from, tt.read)
			}
			out, got := c.output()
			same(t, "stdout", out, want[from:])
			same(t, "stderr", got, errs)
			c.exit()
			c.leave(wire.TypeRelease)
		})
	}
}

// TestCloseIsCut checks that the end of a host end is no end of what its callers do, also
// if its lines take a while to close: no output is lost, and the input goes on.
func TestCloseIsCut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.late = 100 * time.Millisecond
	old := w.host()
	c := start(t, old, wire.Start{Cmd: []string{"cat"}, Stdin: true})
	_, _ = c.in.WriteString("one")
	for waiting(c.out) < 3 {
		time.Sleep(time.Millisecond)
	}
	_ = old.Close()
	c.close()
	c = attachOnceCut(t, w.host(), id(c))
	same(t, "what was not read", read(t, c.out, 3), []byte("one"))
	if !c.exec.Stdin {
		t.Fatal("the input has ended")
	}
	_, _ = c.in.WriteString("two")
	_ = c.in.Close()
	out, _ := c.output()
	same(t, "the echo", out, []byte("two"))
	c.exit()
	c.leave(wire.TypeRelease)
}

// TestOwnerLosesExec checks that an owner whose line was cut hears that another caller
// has taken over, and one whose line is alive keeps its exec.
func TestOwnerLosesExec(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := start(t, w.host(), wire.Start{Cmd: []string{"sleep"}})
	read(t, old.out, len("asleep"))
	conn := connect(t, w.host())
	_ = conn.Send(wire.TypeAttach, id(old))
	if f, err := conn.Recv(); err != nil || f.Type != wire.TypeError {
		t.Fatalf("got %+v, %v", f, err)
	}
	_ = conn.Close()
	w.proxy.refuses.Store(true)
	w.proxy.cut()
	direct := w.directHost()
	c := attachOnceCut(t, direct, id(old))
	w.proxy.refuses.Store(false)
	if _, err := old.conn.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("the old caller sees %v", err)
	}
	old.close()
	_ = c.conn.Send(wire.TypeCancel, wire.Cancel{})
	if s := c.exit(); s.ExitCode != 7 {
		t.Errorf("%+v", s)
	}
	c.leave(wire.TypeRelease)
}

// TestKeptStdin checks that an input that init keeps open is there for the next caller,
// and another one ends with its caller.
func TestKeptStdin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.host()
	for _, keep := range []bool{true, false} {
		t.Run(strconv.FormatBool(keep), func(t *testing.T) {
			c := start(t, h, wire.Start{Cmd: []string{"cat"}, Stdin: true, KeepStdin: keep})
			_, _ = c.in.WriteString("one")
			c.leave(wire.TypeDetach)
			c = attach(t, h, id(c))
			if string(read(t, c.out, 3)) != "one" || c.exec.Stdin != keep {
				t.Fatalf("%+v", c.exec)
			}
			if keep {
				_, _ = c.in.WriteString("two")
				same(t, "echo", read(t, c.out, 3), []byte("two"))
				_ = c.in.Close()
				_ = c.conn.Send(wire.TypeCloseStdin, nil)
			}
			c.output()
			c.exit()
			c.leave(wire.TypeRelease)
		})
	}
}

// TestDeafCommand checks that a caller can't write to a command that has closed its input.
func TestDeafCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := start(t, w.host(), wire.Start{Cmd: []string{"deaf"}, Stdin: true})
	for {
		if _, err := c.in.Write(make([]byte, 1000)); err != nil {
			if !errors.Is(err, unix.EPIPE) {
				t.Error(err)
			}
			break
		}
	}
	_ = c.conn.Send(wire.TypeCancel, wire.Cancel{})
	c.exit()
	c.leave(wire.TypeRelease)
}

// TestDeafCommandIsCut checks that an exec whose command has closed its input outlives a
// cut in which a part of that input is lost.
func TestDeafCommandIsCut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.proxy.loses.Store(100 << 10)
	c := start(t, w.host(), wire.Start{Cmd: []string{"sleep"}, Stdin: true})
	if _, err := c.in.Write(make([]byte, 400<<10)); err != nil { // more than arrives and the pipe holds: the host end has the rest
		t.Fatal(err)
	}
	w.init.deafen(c.exec.ID)
	for {
		if _, err := c.in.Write(make([]byte, 1000)); err != nil {
			if !errors.Is(err, unix.EPIPE) {
				t.Error(err)
			}
			break
		}
	}
	w.proxy.loses.Store(0)
	w.proxy.cut()
	_ = c.conn.Send(wire.TypeCancel, wire.Cancel{})
	if s := c.exit(); s.ExitCode != 7 {
		t.Errorf("%+v", s)
	}
	c.leave(wire.TypeRelease)
	w.init.got(wire.TypeRelease, 1)
}

// TestUnreadOutput checks that a pipe that nobody reads holds the command back, and no
// request.
func TestUnreadOutput(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := start(t, w.host(), wire.Start{Cmd: []string{"fill", strconv.Itoa(64 << 20)}})
	_ = c.conn.Send(wire.TypeSignal, wire.Signal{Signal: 1})
	w.init.got(wire.TypeSignal, 1)
	n, err := io.Copy(io.Discard, c.out)
	if err != nil || n != 64<<20 {
		t.Errorf("read %d bytes: %v", n, err)
	}
	c.exit()
	c.leave(wire.TypeRelease)
}

// TestExitAfterOutput checks that all output is in the pipe when the end comes.
func TestExitAfterOutput(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.host()
	for range 200 {
		c := start(t, h, write(40_000, 1))
		c.exit()
		if n, m := waiting(c.out), waiting(c.err); n != 40_000 || m != 40_000 {
			t.Fatalf("%d and %d bytes wait", n, m)
		}
		c.leave(wire.TypeRelease)
	}
}

func TestTerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.host()
	c := start(t, h, wire.Start{Cmd: []string{"cat"}, TTY: true})
	for range 3 {
		_, _ = c.in.WriteString("abcde")
		same(t, "echo", read(t, c.out, 3), []byte("abc"))
		c.leave(wire.TypeDetach)
		c = attach(t, h, id(c))
		same(t, "the rest of the echo", read(t, c.out, 2), []byte("de"))
	}
	c.leave(wire.TypeRelease)
	w.init.got(wire.TypeRelease, 1)
}

func TestTransfer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	conn := connect(t, w.host())
	_ = conn.Send(wire.TypeFiles, wire.Files{})
	f, err := conn.Recv()
	if err != nil || f.Type != wire.TypeMoving || len(f.FDs) != 2 {
		t.Fatalf("%+v, %v", f, err)
	}
	data, talk := file(f.FDs[0]), file(f.FDs[1])
	_, _ = talk.WriteString("hello")
	got, err := io.ReadAll(data)
	if err != nil {
		t.Error(err)
	}
	same(t, "data", got, noise(9, 1<<20))
	if words, err := io.ReadAll(talk); string(words) != "hello done" || err != nil {
		t.Errorf("%q, %v", words, err)
	}
	_, _, _ = data.Close(), talk.Close(), conn.Close()
}

// TestRequests checks the other requests, over one line.
func TestRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.host()
	for range 3 {
		conn := connect(t, h)
		_ = conn.Send(wire.TypeExecs, nil)
		n := 0
		for {
			f, err := conn.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if f.Type == wire.TypeListed {
				break
			}
			n++
		}
		if n != 40 {
			t.Errorf("%d execs", n)
		}
		if _, err := conn.Recv(); !errors.Is(err, io.EOF) {
			t.Errorf("after the answer: %v", err)
		}
		_ = conn.Close()
	}
}
