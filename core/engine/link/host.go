package link

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/wire"
)

const (
	// dialTimeout bounds how long a new line may take.
	dialTimeout = 10 * time.Second
	// A line that serves no session is kept for idleTime, at most maxIdle of them.
	idleTime = time.Minute
	maxIdle  = 4
	// redial is the longest pause between two tries to make a line.
	redial = time.Second
	// farewell is how long Close waits for sessions whose callers have left.
	farewell = time.Second
)

// Host is the host end of one box: it makes connections to the box's init, and keeps
// lines for the next ones.
type Host struct {
	dial   func(context.Context) (net.Conn, error)
	ctx    context.Context //nolint:containedctx // the life of the Host, which sessions dial again in
	cancel context.CancelFunc
	owners sync.WaitGroup

	mu       sync.Mutex
	idle     []*line
	sessions map[*session]struct{}
}

// NewHost returns the host end of one box. dial makes a new line: an established
// connection whose other side has been verified. Its owner closes the Host.
func NewHost(dial func(context.Context) (net.Conn, error)) *Host {
	h := &Host{dial: dial, sessions: map[*session]struct{}{}}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// Connect returns a connection to the box's init, as wire.Dial does for a box of this
// host, or with polled as wire.DialPolled does. The connection and the descriptors that
// come over it outlive cuts of the line, not the Host. Errors: those of dial, net.ErrClosed
// after Close, those of making a socket pair.
func (h *Host) Connect(ctx context.Context, polled bool) (*wire.Conn, error) {
	l, err := h.take(ctx)
	if err != nil {
		return nil, err
	}
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = errors.Join(unix.SetNonblock(p[0], true), unix.SetNonblock(p[1], polled))
	}
	if err != nil {
		h.keep(l)
		return nil, fmt.Errorf("make the connection to an init: %w", err)
	}
	s, caller := newSession(wire.NewConn(p[0], "caller"), nil), wire.NewConn(p[1], "init")
	_, _ = rand.Read(s.id[:]) // never fails
	if !h.own(s, l) {
		_, _ = s.conn.Close(), caller.Close()
		l.close()
		return nil, net.ErrClosed
	}
	return caller, nil
}

// own starts the goroutine that owns a session, unless the Host is closed.
func (h *Host) own(s *session, l *line) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx.Err() != nil {
		return false
	}
	h.sessions[s] = struct{}{}
	h.owners.Go(func() {
		h.run(s, l)
		h.mu.Lock()
		delete(h.sessions, s)
		_ = s.conn.Close()
		h.mu.Unlock()
		close(s.done)
	})
	return true
}

// leaving returns the sessions whose callers have left, but which the box end may not
// know to have ended.
func (h *Host) leaving() (list []*session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.sessions {
		if s.conn.HungUp() {
			list = append(list, s)
		}
	}
	return list
}

// Close ends all sessions as a cut does: their callers see their connections end, and
// another Host may take their execs over. Those whose callers have left have a moment to
// tell the box end. Close returns once all is closed.
func (h *Host) Close() error {
	late := time.After(farewell)
	for _, s := range h.leaving() {
		select {
		case <-s.done:
			continue
		case <-late:
		}
		break
	}
	h.mu.Lock()
	h.cancel()
	for s := range h.sessions {
		s.end(true)
	}
	for _, l := range h.idle {
		l.close()
	}
	h.idle = nil
	h.mu.Unlock()
	h.owners.Wait()
	return nil
}

// take returns a line that was kept, or a new one.
func (h *Host) take(ctx context.Context) (*line, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for n := len(h.idle); n > 0; n = len(h.idle) {
		l := h.idle[n-1]
		h.idle = h.idle[:n-1]
		if l.rest.Stop() {
			return l, nil
		}
	}
	h.mu.Unlock()
	defer h.mu.Lock()
	return h.call(ctx)
}

func (h *Host) call(ctx context.Context) (*line, error) {
	if h.ctx.Err() != nil {
		return nil, net.ErrClosed
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	defer context.AfterFunc(h.ctx, cancel)()
	conn, err := h.dial(ctx)
	if err != nil {
		return nil, err
	}
	return newLine(conn), nil
}

// keep keeps a line that serves no session any more, for the next one.
func (h *Host) keep(l *line) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx.Err() != nil || len(h.idle) >= maxIdle {
		l.close()
		return
	}
	l.rest = time.AfterFunc(idleTime, l.close)
	h.idle = append(h.idle, l)
}

// run owns a session: it opens it with the caller's first request, and has it served by
// one line after the other until it has ended.
func (h *Host) run(s *session, l *line) {
	first, err := s.conn.Recv()
	if err != nil {
		h.keep(l)
		return
	}
	first.CloseFDs() // no request has descriptors
	if first.Type == wire.TypeAttach {
		for _, before := range h.leaving() { // one may be the exec's reader until now
			if before != s {
				<-before.done
			}
		}
	}
	s.workers.Go(func() { s.deliver(s.pass) })
	listener := make(chan struct{})
	go func() {
		defer close(listener)
		s.listen()
	}()
	if l = h.serve(s, l, first); l != nil {
		h.keep(l)
	}
	s.end(true)
	<-listener
	s.workers.Wait()
}

// serve returns the last line of a session, or nil if that is closed.
func (h *Host) serve(s *session, l *line, first wire.Frame) *line {
	opened := false
	for pause := time.Duration(0); ; {
		err := errCut
		if l != nil {
			unwatch := context.AfterFunc(h.ctx, l.close) // the session has no line yet that its end could close
			err = s.begin(l, first, &opened)
			unwatch()
			if err == nil {
				pause = 0
				err = s.serve(l)
			}
			if err == nil {
				return l
			}
			l.close()
		}
		if errors.Is(err, errGone) || errors.Is(err, wire.ErrProtocol) || s.abandoned(opened) || !h.rest(s, pause) {
			return nil
		}
		pause = min(max(2*pause, 10*time.Millisecond), redial)
		l, _ = h.call(h.ctx) // if it fails, the next try may not
	}
}

// rest waits for a while, and returns false if the session ends meanwhile.
func (h *Host) rest(s *session, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-h.ctx.Done():
		return false
	case <-timer.C:
		s.mu.Lock()
		defer s.mu.Unlock()
		return !s.over
	}
}

// abandoned tells whether the caller has left a session that was never opened.
func (s *session) abandoned(opened bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over || !opened && s.leaving
}

// begin opens or resumes a session of the host end on a line.
func (s *session) begin(l *line, first wire.Frame, opened *bool) error {
	h, b := header{kind: kindOpen}, append([]byte(nil), s.id[:]...)
	if *opened {
		h.kind = kindResume
		s.mu.Lock()
		b = appendOffsets(b, s.received())
		s.mu.Unlock()
	} else {
		b = append(append(b, byte(first.Type)), first.Body...)
	}
	h.size = len(b)
	if err := l.write(append(h.append(nil), b...)); err != nil {
		return err
	}
	answer, err := l.header()
	if err != nil {
		return err
	}
	if answer.kind == kindUnknown {
		return errGone
	}
	if answer.kind != kindOpened {
		return answer.refused()
	}
	if b, err = readBody(l.in, answer.size); err != nil {
		return err
	}
	received, err := parseOffsets(b)
	if err != nil {
		return err
	}
	*opened = true
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bind(l, received)
}

// listen passes the caller's requests on until it leaves.
func (s *session) listen() {
	left := kindFin
	for {
		f, err := s.conn.Recv()
		if err != nil {
			break
		}
		f.CloseFDs()
		if f.Type == wire.TypeDetach {
			left = kindDetach
			break
		}
		s.put(record{frame: f})
	}
	s.leave(left)
}

// leave ends the session once what the caller has written is read.
func (s *session) leave(left kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaving = true
	s.changed.Broadcast()
	for _, st := range s.streams[1:] {
		if st.out != nil {
			_ = st.file.SetReadDeadline(time.Unix(1, 0)) // ends a wait for more
		}
	}
	for _, st := range s.streams[1:] {
		for st.out != nil && !st.out.fin && !s.over {
			s.changed.Wait()
		}
	}
	s.left = left
	s.wake()
}

// deliver passes the records of stream 0 on, until the other end has sent the last one.
func (s *session) deliver(pass func(record) error) {
	s.mu.Lock()
	r := records{s, s.streams[0]}
	s.mu.Unlock()
	for {
		rec, err := readRecord(r)
		if err == nil {
			err = pass(rec)
		}
		if err == nil {
			continue
		}
		if s.box() {
			s.delivered(r.st)
		} else {
			s.hungUp(err)
		}
		return
	}
}

// hungUp ends the caller's connection after the last record of the box end, and the
// session if that broke the protocol.
func (s *session) hungUp(err error) {
	s.conn.Cut()
	if !errors.Is(err, io.EOF) {
		s.end(true)
	}
}

// pass passes one record to the caller, with the other ends of the streams it begins.
func (s *session) pass(r record) error {
	var err error
	for _, n := range r.notes {
		var fd int
		if n.what == before {
			err = s.await(n)
		} else if fd, err = s.begun(n); err == nil {
			r.frame.FDs = append(r.frame.FDs, fd)
		}
		if err != nil {
			break
		}
	}
	if err == nil {
		_ = s.conn.Forward(r.frame) // if the caller has left, nobody wants it
	}
	r.frame.CloseFDs()
	return err
}

// await waits until the bytes of a stream before an offset are in its file.
func (s *session) await(n note) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.stream >= len(s.streams) || s.streams[n.stream].in == nil {
		return fmt.Errorf("%w: a note %v", wire.ErrProtocol, n)
	}
	s.barred++
	defer func() { s.barred-- }()
	for in := s.streams[n.stream].in; in.taken < n.from && !in.dead && !(in.fin && !in.draining) && !s.over && !s.leaving; {
		s.changed.Wait()
	}
	return nil
}

// begun begins a stream and returns the caller's end of it.
func (s *session) begun(n note) (fd int, err error) {
	var p [2]int // ours, the caller's
	switch n.what {
	case bothWays:
		p, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	case toHost:
		err = unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK)
		p[0], p[1] = p[1], p[0]
	default:
		err = unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK)
	}
	if err != nil {
		return -1, err
	}
	st, err := newStream(p[0], n, true)
	if err == nil && n.what == bothWays {
		err = st.count(p[1])
	}
	if err == nil {
		err = s.join(st, n)
	}
	if err != nil {
		_ = unix.Close(p[1])
		return -1, err
	}
	return p[1], nil
}

// count keeps the caller's end of a socket pair, to ask how much waits in it.
func (st *stream) count(fd int) error {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		st.close()
		return err
	}
	st.peer = os.NewFile(uintptr(own), "peer")
	return nil
}

// join adds a stream to the session of the host end, and reads it.
func (s *session) join(st *stream, n note) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || n.stream != len(s.streams) {
		st.close()
		return fmt.Errorf("%w: a note %v", wire.ErrProtocol, n)
	}
	s.streams = append(s.streams, st)
	s.changed.Broadcast()
	if s.leaving && st.out != nil {
		st.out.fin = true
	} else if st.out != nil {
		s.workers.Go(func() { s.pump(st) })
	}
	return nil
}
