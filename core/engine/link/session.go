package link

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/wire"
)

// session is one end of a connection to init that is stretched over lines. Both ends
// are the same but for these: the host end is left by its caller, and counts what its
// caller has not yet read; the box end remembers its exec for another caller.
type session struct {
	id   [idSize]byte
	conn *wire.Conn // to the caller, or to init
	kept *kept      // at the box end; nil at the host end

	done    chan struct{}  // at the host end: closed once the session has ended
	workers sync.WaitGroup // all goroutines but the one that owns the session

	mu      sync.Mutex
	changed sync.Cond // waited for with mu: room, bytes, lines, ends
	streams []*stream
	line    *line // that serves it now, or nil
	barred  int   // how many records wait for output that comes before them
	hungry  bool  // whoever takes the records of stream 0 has taken all
	lazy    bool  // acknowledge also a little
	pong    bool  // owe an answer to a ping
	over    bool

	leaving bool // at the host end: the caller has left, and what it wrote is still sent
	left    kind // the last frame that the host end has to send, once leaving: kindFin or kindDetach
}

func newSession(conn *wire.Conn, k *kept) *session {
	s := &session{conn: conn, kept: k, done: make(chan struct{})}
	s.changed.L = &s.mu
	s.streams = []*stream{{what: bothWays, out: newOutgoing(0), in: newIncoming(0)}}
	return s
}

// box tells which end this is.
func (s *session) box() bool { return s.kept != nil }

// kick tells the sender that there is something to send. s.mu is held.
func (s *session) kick() {
	if s.line != nil {
		s.line.kick()
	}
}

// wake tells everybody that something has changed. s.mu is held.
func (s *session) wake() {
	s.kick()
	s.changed.Broadcast()
}

// end ends the session at this end. The files that still take bytes that have arrived
// are left to those that write them, unless now is set.
func (s *session) end(now bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	for _, st := range s.streams[1:] {
		if st.in != nil && st.in.draining && !now && s.box() {
			st.in.fin, st.in.keep = true, false
			continue
		}
		st.close()
	}
	s.conn.Cut()
	if s.line != nil {
		go s.line.close()
	}
	s.wake()
}

// put appends a record to stream 0, once the other end has taken most of those before.
func (s *session) put(r record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.streams[0]
	for st.out.underWay() >= window && !s.over && st == s.streams[0] {
		s.changed.Wait()
	}
	if st == s.streams[0] { // otherwise another caller has taken over, and been told all
		st.out.ring.add(r.bytes())
		s.kick()
	}
}

// records reads the bytes of stream 0. They end where the other end ended them, where
// another caller has taken over, or with the session.
type records struct {
	s  *session
	st *stream
}

func (r records) Read(p []byte) (int, error) {
	s, in := r.s, r.st.in
	s.mu.Lock()
	defer s.mu.Unlock()
	for in.pending.held() == 0 {
		if in.fin || s.over || r.st != s.streams[0] {
			return 0, io.EOF
		}
		s.hungry = true
		s.changed.Broadcast()
		s.changed.Wait()
	}
	s.hungry = false
	n := copy(p, in.pending.at(in.taken, len(p)))
	in.pending.drop(in.taken + int64(n))
	s.wrote(r.st, n, nil)
	return n, nil
}

// received returns how far this end has received each stream. s.mu is held.
func (s *session) received() []int64 {
	offsets := make([]int64, len(s.streams))
	for i, st := range s.streams {
		if st.in != nil {
			offsets[i] = st.in.received
		}
	}
	return offsets
}

// rewind prepares the streams for a new line: each goes on where the other end has
// received it up to. One that nobody reads there has ended, and nothing of it is held.
// s.mu is held.
func (s *session) rewind(received []int64) error {
	for i, st := range s.streams {
		if o := st.out; o != nil && !o.stopped {
			from := o.start
			if i < len(received) {
				from = received[i]
			}
			if from < o.ring.base || from > o.ring.end {
				return fmt.Errorf("%w: stream %d was received up to %d, but %d to %d are held", wire.ErrProtocol, i, from, o.ring.base, o.ring.end)
			}
			o.sent, o.finSent = from, false
		}
		if st.in != nil {
			st.in.again, st.in.stopSent = true, false
		}
	}
	return nil
}

// batch appends to b the frames that are to be sent now, up to maxFrame bytes of data:
// none once the session has ended at this end, whose line may still be open for a moment.
// last tells that no frame of the session follows on this line.
func (s *session) batch(b []byte) (_ []byte, last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over { // end closed the files: the other end must not be told that what goes through them has ended
		return b, false
	}
	if s.box() && s.kept.answerable() {
		return header{kind: kindEnded}.append(b), true
	}
	if s.pong {
		s.pong = false
		b = header{kind: kindPong}.append(b)
	}
	lazy := s.lazy || s.left == kindDetach
	s.lazy = false
	for i, st := range s.streams {
		b = s.acknowledge(b, i, st, lazy)
		b = s.appendData(b, i, st)
		if i == 0 && !st.out.done() {
			return b, false // stream 0 first: it says which streams there are
		}
	}
	for _, st := range s.streams {
		if !st.out.done() {
			return b, false
		}
	}
	if s.left == 0 {
		return b, false
	}
	return header{kind: s.left, offset: s.streams[0].out.sent}.append(b), true
}

// acknowledge appends what the other end has to know of what it sent on a stream.
func (s *session) acknowledge(b []byte, i int, st *stream, lazy bool) []byte {
	in := st.in
	if in == nil || in.silent {
		return b
	}
	if lazy || in.again || in.taken-in.told >= quantum {
		taken := st.consumed(!s.box())
		if taken-in.told >= quantum || taken > in.told && lazy || in.again {
			in.told, in.again = max(in.told, taken), false
			b = header{kind: kindAck, stream: i, offset: in.told}.append(b)
		}
	}
	if in.dead && s.box() && !in.stopSent {
		in.stopSent = true
		b = header{kind: kindStop, stream: i}.append(b)
	}
	return b
}

// appendData appends what a stream has to send, as far as it fits, and its end.
func (s *session) appendData(b []byte, i int, st *stream) []byte {
	o := st.out
	if o == nil || o.stopped {
		return b
	}
	for o.sent < o.ring.end && o.sent-o.acked < window {
		space := min(maxFrame-headerSize-len(b), maxData, int(window-(o.sent-o.acked)))
		if space <= 0 {
			return b
		}
		// The bytes may wrap around in the ring: both parts go into one frame.
		p := o.ring.at(o.sent, space)
		q := o.ring.at(o.sent+int64(len(p)), space-len(p))
		b = header{kind: kindData, stream: i, size: len(p) + len(q), offset: o.sent}.append(b)
		b = append(append(b, p...), q...)
		o.sent += int64(len(p) + len(q))
	}
	if o.fin && !o.finSent && o.sent == o.ring.end && (i > 0 || s.box()) && (!s.leaving || s.left == kindFin) {
		o.finSent = true
		b = header{kind: kindFin, stream: i, offset: o.sent}.append(b)
	}
	return b
}

// stream returns the stream of a frame, or an error if it has none in the direction
// that the frame is for. The record that begins the stream came before, but may not have
// been taken yet.
func (s *session) stream(h header) (*stream, error) {
	for h.stream >= len(s.streams) && !s.hungry && !s.over {
		s.changed.Wait()
	}
	if h.stream < len(s.streams) {
		st := s.streams[h.stream]
		incoming := h.kind == kindData || h.kind == kindFin
		if incoming && st.in != nil || !incoming && st.out != nil {
			return st, nil
		}
	}
	return nil, h.refused()
}

func (h header) refused() error {
	return fmt.Errorf("%w: a frame of kind %d for stream %d with %d bytes at %d", wire.ErrProtocol, h.kind, h.stream, h.size, h.offset)
}

// receive handles the frames of a line until the other end has sent its last one.
func (s *session) receive(l *line) error {
	for {
		h, err := l.header()
		if err != nil {
			return err
		}
		var last bool
		if h.kind == kindData {
			err = s.receiveData(l, h)
		} else {
			last, err = s.handle(h)
		}
		if last || err != nil {
			return err
		}
	}
}

func (s *session) receiveData(l *line, h header) error {
	s.mu.Lock()
	st, err := s.stream(h)
	if err == nil {
		in := st.in
		if h.offset != in.received || in.fin || h.offset+int64(h.size)-in.told > window {
			err = h.refused()
		}
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return l.payload(h.size, func(p []byte) { s.accept(st, p) })
}

// handle handles a frame without bytes.
func (s *session) handle(h header) (last bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case h.kind == kindAck:
		return false, s.acked(h)
	case h.kind == kindFin && h.stream == 0 && s.box():
		s.kept.heard = true
		s.kick()
		return true, s.fin(h)
	case h.kind == kindFin:
		return false, s.fin(h)
	case h.kind == kindStop && !s.box():
		return false, s.stop(h)
	case h.kind == kindPong && !s.box():
		return false, nil
	case h.kind == kindEnded && !s.box() && s.left != 0:
		return true, nil
	case h.kind == kindPing && s.box():
		s.pong = true
		s.kick()
		return false, nil
	case h.kind == kindDetach && s.box():
		s.detach()
		return true, nil
	}
	return false, h.refused()
}

func (s *session) acked(h header) error {
	st, err := s.stream(h)
	if err != nil || h.offset > st.out.sent {
		return errors.Join(err, h.refused())
	}
	o := st.out
	if h.offset <= o.acked {
		return nil // told again on a new line
	}
	o.acked = h.offset
	if s.box() {
		h.offset -= tail
	}
	o.ring.drop(h.offset)
	s.wake()
	return nil
}

func (s *session) fin(h header) error {
	st, err := s.stream(h)
	if err != nil || h.offset != st.in.received {
		return errors.Join(err, h.refused())
	}
	if !st.in.fin {
		st.in.fin = true
		s.finish(st)
		s.changed.Broadcast()
	}
	return nil
}

// stop handles that the command does not read its input any more: nor can the caller
// write to it.
func (s *session) stop(h header) error {
	st, err := s.stream(h)
	if err != nil || h.stream == 0 {
		return errors.Join(err, h.refused())
	}
	st.out.stopped = true
	st.out.ring.drop(st.out.ring.end)
	if st.what == bothWays {
		withFD(st.file, func(fd int) { _ = unix.Shutdown(fd, unix.SHUT_RD) })
	} else {
		_ = st.file.Close()
	}
	s.wake()
	return nil
}

// bind gives a session to a line. It waits until a line that served it before has
// noticed that it is cut. s.mu is held.
func (s *session) bind(l *line, received []int64) error {
	for s.line != nil && !s.over {
		go s.line.close()
		s.changed.Wait()
	}
	if s.over {
		return errGone
	}
	if err := s.rewind(received); err != nil {
		return err
	}
	s.hold(l)
	return nil
}

// hold makes the line the one that serves the session. s.mu is held.
func (s *session) hold(l *line) {
	s.line = l
	if s.box() {
		s.kept.heard, s.kept.detached = false, false
	}
	s.wake()
}

var errGone = errors.New("the session has ended")

// serve lets a line that the session is bound to serve it. It returns nil when both ends
// have sent their last frames, and otherwise why the line is cut.
func (s *session) serve(l *line) error {
	received := make(chan error, 1)
	s.workers.Go(func() {
		err := s.receive(l)
		if err != nil {
			l.close()
		}
		received <- err
	})
	sent := s.send(l)
	if sent != nil {
		l.close()
	}
	err := <-received
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line = nil
	s.changed.Broadcast()
	if err == nil {
		err = sent
	}
	if s.box() {
		s.kept.since = time.Now()
	}
	if err == nil && s.over && !s.box() {
		err = errGone
	}
	return err
}

// send sends what there is to be sent, until the last frame of this end.
func (s *session) send(l *line) error {
	const soon = 50 * time.Millisecond
	wait := soon
	timer := time.NewTimer(wait)
	defer timer.Stop()
	quiet := time.Now()
	for {
		b, last := s.batch(l.out[:0])
		if len(b) > 0 {
			if err := l.write(b); err != nil {
				return err
			}
			if last {
				return nil
			}
			quiet = time.Now()
			continue
		}
		select {
		case <-l.work:
			if wait > soon {
				wait = soon
				timer.Reset(wait)
			}
		case <-l.closed:
			return errCut
		case <-timer.C:
			// What the caller has read since is not worth an acknowledgement of its
			// own, unless nothing else has been sent for a while.
			s.mu.Lock()
			s.lazy = true
			s.mu.Unlock()
			wait = min(2*wait, pingEvery)
			timer.Reset(wait)
			if !s.box() && time.Since(quiet) >= pingEvery {
				quiet = time.Now()
				if err := l.write(header{kind: kindPing}.append(l.out[:0])); err != nil {
					return err
				}
			}
		}
	}
}
