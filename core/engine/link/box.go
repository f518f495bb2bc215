package link

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/wire"
)

const (
	// handshake bounds how long a new line may take to say which session it serves,
	// and rests how long an old one may be without a session.
	handshake = 10 * time.Second
	rests     = 2 * idleTime
	// maxLines is how many lines there may be at once.
	maxLines = 2048
	// fresh is for how long after a cut a session is kept for its owner alone.
	fresh = 2 * time.Second
	// linger is how long after a cut a session without an exec is kept.
	linger = 30 * time.Second
	// shortage is the pause before the next try when descriptors or memory have run out.
	shortage = 5 * time.Millisecond
)

// box is the box end of all sessions of a box.
type box struct {
	ctx     context.Context //nolint:containedctx // the life of the box end
	connect func() (*wire.Conn, error)
	tasks   sync.WaitGroup

	mu       sync.Mutex
	lines    map[*line]struct{}
	sessions map[[idSize]byte]*session
	execs    map[string]*session
	all      map[*session]struct{} // also those that only write the rest of an input
}

// kept is what the box end remembers of a session. The session's mutex guards it.
type kept struct {
	exec      string // its id, once it has been started
	started   []byte // the body of its TypeStarted
	end       *record
	keepStdin bool
	initEnded bool // init has closed the connection

	heard     bool // the host end has sent its last frame on this line
	detached  bool
	delivered bool // init has got all frames, and the host end sends no more

	since time.Time // when the session last lost its line
}

// answerable tells whether the last frame of the host end can be answered.
func (k *kept) answerable() bool { return k.heard && (k.detached || k.delivered) }

// Serve is the box end: it accepts lines on l, a TLS listener that verifies its clients,
// until ctx ends or l fails, and then ends all sessions. connect returns a new connection
// to the box's init, in non-blocking mode. Serve owns l. The error is that of l, or why
// ctx has ended.
func Serve(ctx context.Context, l net.Listener, connect func() (*wire.Conn, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	b := &box{
		ctx: ctx, connect: connect, lines: map[*line]struct{}{}, sessions: map[[idSize]byte]*session{},
		execs: map[string]*session{}, all: map[*session]struct{}{},
	}
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	err := b.accept(l)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	cancel()
	_ = l.Close()
	b.close()
	return err
}

func (b *box) accept(l net.Listener) error {
	for {
		conn, err := l.Accept()
		switch {
		case err == nil:
			b.add(conn)
		case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE), errors.Is(err, unix.ENOMEM):
			time.Sleep(shortage) // the kernel does not report when there is room again
		case errors.Is(err, unix.ECONNABORTED):
		default:
			return err
		}
	}
}

func (b *box) add(conn net.Conn) {
	l := newLine(conn)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ctx.Err() != nil || len(b.lines) >= maxLines {
		_ = conn.Close()
		return
	}
	b.lines[l] = struct{}{}
	b.tasks.Go(func() {
		b.run(l)
		l.close()
		b.mu.Lock()
		delete(b.lines, l)
		b.mu.Unlock()
	})
}

// close ends all lines and sessions, once ctx has ended.
func (b *box) close() {
	b.mu.Lock()
	for l := range b.lines {
		l.close()
	}
	for s := range b.all {
		s.end(true)
	}
	b.mu.Unlock()
	b.tasks.Wait()
}

// run serves one session after the other on a line.
func (b *box) run(l *line) {
	wait := handshake
	_ = l.conn.SetDeadline(time.Now().Add(handshake))
	if t, ok := l.conn.(*tls.Conn); ok && t.HandshakeContext(b.ctx) != nil {
		return
	}
	for ; b.ctx.Err() == nil; wait = rests {
		l.until = time.Now().Add(wait)
		_ = l.conn.SetReadDeadline(l.until)
		h, err := l.next()
		if err != nil {
			return
		}
		s, err := b.begin(l, h)
		if err != nil {
			_ = l.write(header{kind: kindUnknown}.append(nil))
			return
		}
		err = s.welcome(l)
		if err == nil {
			err = s.serve(l)
		} else {
			s.unbind()
		}
		b.left(s, err)
		if err != nil {
			return
		}
	}
}

// welcome tells the host end that the session goes on.
func (s *session) welcome(l *line) error {
	s.mu.Lock()
	offsets := appendOffsets(nil, s.received())
	s.mu.Unlock()
	return l.write(append(header{kind: kindOpened, size: len(offsets)}.append(nil), offsets...))
}

// begin returns the session that a line opens or resumes, bound to the line.
func (b *box) begin(l *line, h header) (*session, error) {
	if h.kind != kindOpen && h.kind != kindResume {
		return nil, h.refused()
	}
	body, err := readBody(l.in, h.size)
	if err != nil {
		return nil, err
	}
	id, body := [idSize]byte(body), body[idSize:]
	if h.kind == kindResume {
		received, err := parseOffsets(body)
		if err != nil {
			return nil, err
		}
		return b.resume(l, id, received)
	}
	s, err := b.resume(l, id, nil)
	if errors.Is(err, errGone) {
		return b.open(l, id, wire.Frame{Type: wire.Type(body[0]), Body: body[1:]})
	}
	return s, err // opened before, but the host end has not heard of it
}

func (b *box) resume(l *line, id [idSize]byte, received []int64) (*session, error) {
	b.mu.Lock()
	s := b.sessions[id]
	b.mu.Unlock()
	if s == nil {
		return nil, errGone
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.id != id {
		return nil, errGone
	}
	return s, s.bind(l, received)
}

// open begins a session with its first request. An Attach to the exec of a session that
// has no line continues that one.
func (b *box) open(l *line, id [idSize]byte, first wire.Frame) (*session, error) {
	if first.Type == wire.TypeAttach {
		var r wire.Attach
		if first.Decode(&r) == nil {
			if s := b.takeOver(l, id, r); s != nil {
				return s, nil
			}
		}
	}
	s := newSession(nil, &kept{})
	s.id, s.line = id, l
	if first.Type == wire.TypeStart {
		var r struct {
			KeepStdin bool `json:"keep_stdin"`
		}
		_ = first.Decode(&r) // init says what is wrong with it
		s.kept.keepStdin = r.KeepStdin
	}
	if !b.claim(s) {
		return b.resume(l, id, nil)
	}
	conn, err := b.connect()
	if err == nil {
		s.conn = conn
		if err = conn.Forward(first); err == nil {
			err = b.enter(s)
		}
		if err != nil {
			_ = conn.Close()
		}
	}
	if err != nil {
		b.withdraw(s)
		return nil, err
	}
	return s, nil
}

// claim adds a new session before init hears of it, so that another line on which the
// host end opens it again waits for this one. It returns false if another line was first.
func (b *box) claim(s *session) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sessions[s.id] != nil {
		return false
	}
	b.sessions[s.id] = s
	return true
}

// withdraw takes back a session that could not be opened.
func (b *box) withdraw(s *session) {
	b.mu.Lock()
	delete(b.sessions, s.id)
	b.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over, s.line = true, nil
	s.changed.Broadcast()
}

// enter starts the goroutines of a new session.
func (b *box) enter(s *session) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ctx.Err() != nil {
		return b.ctx.Err()
	}
	b.all[s] = struct{}{}
	s.workers.Go(func() { s.deliver(s.request) })
	b.tasks.Go(func() {
		b.follow(s)
		b.mu.Lock()
		delete(b.all, s)
		b.mu.Unlock()
	})
	return nil
}

// follow sends on what init sends, until the session has ended.
func (b *box) follow(s *session) {
	for {
		f, err := s.conn.Recv()
		if err != nil {
			break
		}
		if err := b.forward(s, f); err != nil {
			f.CloseFDs()
			break
		}
	}
	s.mu.Lock()
	s.kept.initEnded, s.streams[0].out.fin = true, true
	s.wake()
	for !s.over {
		s.changed.Wait()
	}
	s.mu.Unlock()
	_ = s.conn.Close()
	s.workers.Wait()
}

// forward sends a frame of init on, with its descriptors as new streams.
func (b *box) forward(s *session, f wire.Frame) error {
	r := record{frame: f}
	begun, err := s.adopt(f.FDs)
	if err != nil {
		return err
	}
	for i, st := range begun {
		r.notes = append(r.notes, note{what: st.what, stream: len(s.streams) - len(begun) + i})
	}
	if f.Type == wire.TypeExited {
		r.notes = s.before()
		s.mu.Lock()
		s.kept.end = &r
		s.mu.Unlock()
	}
	s.put(r)
	for _, st := range begun {
		if st.out != nil {
			s.workers.Go(func() { s.pump(st) })
		}
	}
	var e struct {
		ID string `json:"id"`
	}
	if f.Type == wire.TypeStarted && f.Decode(&e) == nil {
		s.mu.Lock()
		s.kept.exec, s.kept.started = e.ID, f.Body
		s.mu.Unlock()
		b.mu.Lock()
		defer b.mu.Unlock()
		b.execs[e.ID] = s
	}
	return nil
}

// adopt makes the descriptors of a frame streams, and owns them from then on.
func (s *session) adopt(fds []int) (begun []*stream, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.streams)+len(fds) > maxStreams || s.over {
		return nil, errGone
	}
	for i, fd := range fds {
		fds[i] = -1
		what, err := flows(fd)
		if err != nil {
			_ = unix.Close(fd)
			return nil, err
		}
		st, err := newStream(fd, note{what: what}, false)
		if err != nil {
			return nil, err
		}
		if what == toBox {
			st.in.keep = s.kept.keepStdin
		}
		s.streams, begun = append(s.streams, st), append(begun, st)
	}
	return begun, nil
}

// flows returns which way bytes flow through a descriptor.
func flows(fd int) (direction, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, err
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	switch {
	case err != nil:
		return 0, err
	case st.Mode&unix.S_IFMT != unix.S_IFIFO:
		return bothWays, nil
	case flags&unix.O_ACCMODE == unix.O_RDONLY:
		return toHost, nil
	}
	return toBox, nil
}

// before returns notes of how much output there is now.
func (s *session) before() (notes []note) {
	s.mu.Lock()
	streams := s.streams
	s.mu.Unlock()
	for i, st := range streams {
		if i > 0 && st.out != nil {
			notes = append(notes, note{what: before, stream: i, from: st.total()})
		}
	}
	return notes
}

// request passes a request of the host end to init.
func (s *session) request(r record) error {
	if len(r.notes) > 0 {
		return wire.ErrProtocol
	}
	_ = s.conn.Forward(r.frame) // if init has closed the connection, the host end hears of it
	if r.frame.Type == wire.TypeCloseStdin {
		s.mu.Lock()
		s.closeStdin()
		s.mu.Unlock()
	}
	return nil
}

// closeStdin lets the input of an exec end where the host end ended it. s.mu is held.
func (s *session) closeStdin() {
	for _, st := range s.streams {
		if st.what == toBox && st.in.keep {
			st.in.keep = false
			s.finish(st)
		}
	}
}

// delivered notes that init has got all requests that came over a stream 0.
func (s *session) delivered(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st == s.streams[0] {
		s.kept.delivered = true
		s.kick()
	}
}

// detach leaves the session to another caller. Without one, only an input that init
// keeps open stays open. s.mu is held.
func (s *session) detach() {
	s.kept.heard, s.kept.detached = true, true
	for _, st := range s.streams {
		if st.what == toBox && !st.in.keep && !st.in.fin {
			st.in.fin = true
			s.finish(st)
		}
	}
	s.kick()
}

// unbind takes away a line that was never used.
func (s *session) unbind() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line, s.kept.since = nil, time.Now()
	s.changed.Broadcast()
}

// left handles that a session has no line any more.
func (b *box) left(s *session, err error) {
	s.mu.Lock()
	over, exec, since := err == nil && s.kept.delivered && !s.kept.detached, s.kept.exec, s.kept.since
	s.mu.Unlock()
	switch {
	case over || b.ctx.Err() != nil || errors.Is(err, wire.ErrProtocol):
		b.drop(s)
	case exec != "":
		b.trim()
	default:
		time.AfterFunc(linger, func() {
			s.mu.Lock()
			unused := s.line == nil && s.kept.since.Equal(since) && s.kept.exec == "" // init may have started it since
			s.mu.Unlock()
			if unused {
				b.drop(s)
			}
		})
	}
}

// drop ends a session and forgets it.
func (b *box) drop(s *session) {
	s.end(false)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sessions[s.id] == s {
		delete(b.sessions, s.id)
	}
	if b.execs[s.kept.exec] == s {
		delete(b.execs, s.kept.exec)
	}
}

// trim forgets execs that have ended if too many of those wait for a caller, as init does.
// It forgets the one that has waited for longest, and releases it.
func (b *box) trim() {
	var oldest *session
	ended := 0
	b.mu.Lock()
	for _, s := range b.execs {
		s.mu.Lock()
		if s.line == nil && s.kept.end != nil {
			ended++
			if oldest == nil || s.kept.since.Before(oldest.kept.since) {
				oldest = s
			}
		}
		s.mu.Unlock()
	}
	b.mu.Unlock()
	if ended > wire.MaxExecs {
		_ = oldest.conn.Send(wire.TypeRelease, nil)
		b.drop(oldest)
	}
}

// takeOver continues the session of an exec that has no line for another caller. It
// returns nil if there is none: init knows the answer.
func (b *box) takeOver(l *line, id [idSize]byte, r wire.Attach) *session {
	for {
		b.mu.Lock()
		s := b.execs[r.ID]
		b.mu.Unlock()
		if s == nil {
			return nil
		}
		wait, ok := s.free()
		if ok && wait <= 0 {
			if before, ok := s.continues(l, id, r.Have); ok {
				b.mu.Lock()
				delete(b.sessions, before)
				b.sessions[id] = s
				b.mu.Unlock()
				return s
			}
		}
		if !ok {
			return nil
		}
		select {
		case <-time.After(wait):
		case <-b.ctx.Done():
			return nil
		}
	}
}

// free tells whether a session may be taken over, and for how long its owner may still
// come back. s.mu is not held.
func (s *session) free() (wait time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.line != nil && s.kept.heard && !s.over { // its owner has left it, and knows that
		s.changed.Wait()
	}
	if s.over || s.line != nil {
		return 0, false
	}
	if s.kept.detached {
		return 0, true
	}
	return fresh - time.Since(s.kept.since), true
}

// continues gives a session another owner, whose id it has from now on. It returns the
// id that it had before, and false if somebody else was faster.
func (s *session) continues(l *line, id [idSize]byte, have *wire.Position) (before [idSize]byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || s.line != nil {
		return before, false
	}
	zero := &stream{what: bothWays, out: newOutgoing(0), in: newIncoming(0)}
	zero.out.fin = s.kept.initEnded
	before = s.id
	s.id, s.streams[0], s.kept.delivered = id, zero, false
	zero.out.ring.add(s.again(have).bytes())
	if s.kept.end != nil {
		zero.out.ring.add(s.kept.end.bytes())
	}
	s.hold(l)
	s.workers.Go(func() { s.deliver(s.request) })
	return before, true
}

// again returns the start of the exec for another owner.
func (s *session) again(have *wire.Position) record {
	r := record{frame: wire.Frame{Type: wire.TypeStarted}}
	var e wire.Exec
	_ = json.Unmarshal(s.kept.started, &e) // it was decoded once
	e.Stdin = false
	asked := []int64{-1, -1}
	if have != nil {
		asked = []int64{have.Stdout, have.Stderr}
	}
	begins := []*int64{&e.From.Stdout, &e.From.Stderr}
	for i, st := range s.streams[1:] {
		n := note{what: st.what, stream: i + 1}
		if o := st.out; o != nil && len(begins) > 0 {
			o.restart(asked[0])
			n.from, *begins[0] = o.start, o.start
			e.Streams.Output += o.start
			asked, begins = asked[1:], begins[1:]
		}
		if in := st.in; in != nil {
			n.to = in.received
			in.told = in.received
			in.stopSent = false
			e.Streams.Stdin += in.received
			if st.what == toBox {
				in.fin = in.fin && !in.keep // init keeps it open, so it goes on
				in.silent = in.fin
				e.Stdin = !in.fin
			}
			if in.silent {
				continue
			}
		}
		r.notes = append(r.notes, n)
	}
	r.frame.Body, _ = json.Marshal(e) // it was JSON
	return r
}

// restart lets a stream begin at the offset that another owner asks for, or where the
// one before had taken it up to, or as near to that as there are bytes.
func (o *outgoing) restart(asked int64) {
	if asked < 0 {
		asked = o.acked
	}
	o.start = min(max(asked, o.ring.base), o.ring.end)
	o.sent, o.acked, o.finSent = o.start, o.start, false
}
