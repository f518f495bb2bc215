package link

import (
	"bytes"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/wire"
)

// newBox returns a box end without lines, whose init takes requests and answers none.
func newBox(t testing.TB) *box {
	return &box{
		ctx: t.Context(), connect: func() (*wire.Conn, error) { return silent(t), nil }, lines: map[*line]struct{}{},
		sessions: map[[idSize]byte]*session{}, execs: map[string]*session{}, all: map[*session]struct{}{},
	}
}

// silent returns a connection to an init that answers nothing.
func silent(t testing.TB) *wire.Conn {
	t.Helper()
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	c := wire.NewConn(p[0], "host")
	t.Cleanup(func() { _, _ = c.Close(), unix.Close(p[1]) })
	return c
}

// TestStartedWithoutLine checks that a session whose command starts after its line was
// cut is kept as one whose command had started before: the host end would open it again,
// and so start the command a second time.
func TestStartedWithoutLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		started, unused := newSession(silent(t), &kept{}), newSession(silent(t), &kept{})
		started.id[0] = 1
		for _, s := range []*session{started, unused} {
			b.sessions[s.id] = s
			b.left(s, errCut)
		}
		if err := b.forward(started, wire.Frame{Type: wire.TypeStarted, Body: []byte(`{"id":"exec_0"}`)}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(linger)
		synctest.Wait()
		if b.sessions[started.id] != started || b.execs["exec_0"] != started || started.over {
			t.Error("the session of a command that runs was dropped")
		}
		if len(b.sessions) > 1 {
			t.Error("a session without an exec is kept")
		}
	})
}

// TestOpenedTwice checks that a session that is opened again, while the box end still
// connects to init for it, is the same one.
func TestOpenedTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		connects, proceed := 0, make(chan struct{})
		b.connect = func() (*wire.Conn, error) {
			connects++
			<-proceed
			return silent(t), nil
		}
		body := append(make([]byte, idSize), byte(wire.TypeStart), '{', '}')
		open := func() <-chan *session {
			near, far := net.Pipe()
			l, opened := newLine(near), make(chan *session, 1)
			t.Cleanup(func() { l.close(); _ = far.Close() })
			l.in.Reset(bytes.NewReader(body))
			go func() {
				s, err := b.begin(l, header{kind: kindOpen, size: len(body)})
				if err != nil {
					t.Error(err)
				}
				opened <- s
			}()
			synctest.Wait()
			return opened
		}
		first, second := open(), open()
		if connects != 1 {
			t.Errorf("%d connections to init", connects)
		}
		close(proceed)
		s := <-first
		s.unbind() // its line is cut
		if again := <-second; again != s {
			t.Error("another session was opened")
			again.end(true)
		}
		s.end(true)
		b.tasks.Wait()
	})
}

// TestTotalWhileClosing checks that output is counted while the session's mutex is held,
// as it is while files are closed: a read that waits for the count to be done would keep
// its file from being closed.
func TestTotalWhileClosing(t *testing.T) {
	t.Parallel()
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(p[1])
	s := newSession(nil, &kept{})
	begun, err := s.adopt(p[:1])
	if err != nil {
		t.Fatal(err)
	}
	st := begun[0]
	defer st.close()
	if _, err := unix.Write(p[1], make([]byte, 100)); err != nil {
		t.Fatal(err)
	}

	s.mu.Lock()
	total := make(chan int64, 1)
	go func() { total <- st.total() }()
	select {
	case n := <-total:
		if n != 100 {
			t.Errorf("%d bytes", n)
		}
	case <-time.After(20 * time.Second):
		t.Error("the count waits for the session's mutex")
	}
	s.mu.Unlock()
}

// TestTakenOverID checks that a session which was taken over is known by its new id
// alone: nobody would forget it under the one before.
func TestTakenOverID(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	near, far := net.Pipe()
	l := newLine(near)
	defer l.close()
	defer far.Close()
	first, err := b.open(l, [idSize]byte{1}, wire.Frame{Type: wire.TypeStart, Body: []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.forward(first, wire.Frame{Type: wire.TypeStarted, Body: []byte(`{"id":"exec_0"}`)}); err != nil {
		t.Fatal(err)
	}
	for n := range byte(3) {
		first.mu.Lock()
		first.detach()
		first.mu.Unlock()
		first.unbind()
		s, err := b.open(l, [idSize]byte{2 + n}, wire.Frame{Type: wire.TypeAttach, Body: []byte(`{"id":"exec_0"}`)})
		if s != first || err != nil {
			t.Fatalf("%p instead of %p, %v", s, first, err)
		}
	}
	if len(b.sessions) != 1 || b.sessions[first.id] != first {
		t.Errorf("it has %d ids", len(b.sessions))
	}
	first.unbind()
	b.drop(first)
	if len(b.sessions) > 0 {
		t.Errorf("%d ids are left of it", len(b.sessions))
	}
	b.tasks.Wait()
}
