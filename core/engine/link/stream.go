package link

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// These bound the bytes of one stream in one direction.
const (
	// window is how many may be under way: sent, and not yet taken. It is more than
	// the largest pipe holds that a reader makes of its own (1 MiB). So a full window
	// means a full pipe, and the kernel tells when there is room in that.
	window = 1<<20 + 1<<19
	// tail is how many of those that were taken are kept at the box end for a caller
	// that takes the session over and has fewer.
	tail = 64 << 10
	// quantum is after how many bytes a receiver acknowledges at once.
	quantum = 128 << 10
	// A pipe that has carried more than flow is enlarged to wide.
	flow = 256 << 10
	wide = 256 << 10
)

// stream is one reliable stream of a session, with an offset for each direction. Stream
// 0 is the connection to init; the others end in a file: a pipe, a terminal or a socket.
// The session's mutex guards it.
type stream struct {
	file *os.File
	raw  syscall.RawConn
	peer *os.File // at the host end, the other end of a socket pair: it tells what has not been taken
	what direction
	out  *outgoing // nil if no bytes go to the other end
	in   *incoming // nil if none come from there

	// reading guards got, which counts what came out of the file: it is held while bytes
	// are read, so that each of them is in the file or counted. No other lock is taken
	// meanwhile: the file is closed with the session's mutex held, once no read is under way.
	reading sync.Mutex
	got     int64

	// writing guards written, which counts what went into the file: it is held while bytes
	// go there, so that none is in the file and not counted.
	writing sync.Mutex
	written int64
}

// outgoing is what goes to the other end.
type outgoing struct {
	ring    ring
	start   int64 // the offset at which the other end began
	sent    int64 // on this line
	acked   int64
	fin     bool // nothing follows ring.end
	finSent bool // on this line
	stopped bool // nobody reads it there
}

// incoming is what comes from the other end.
type incoming struct {
	received int64
	taken    int64 // written to the file, or read by whoever takes the records of stream 0
	told     int64 // acknowledged
	pending  ring  // received and not taken, where the file has no room
	draining bool  // a goroutine writes pending to the file
	fin      bool
	keep     bool // don't close the file at fin
	silent   bool // the other end does not know the stream
	dead     bool // nobody reads the file
	again    bool // acknowledge on this line even if nothing has changed
	stopSent bool // on this line
}

func (o *outgoing) underWay() int { return int(o.ring.end - o.acked) }

// done tells whether all has been sent.
func (o *outgoing) done() bool { return o == nil || o.stopped || o.sent == o.ring.end }

func newOutgoing(start int64) *outgoing {
	return &outgoing{ring: ring{base: start, end: start}, start: start, sent: start, acked: start}
}

func newIncoming(start int64) *incoming {
	return &incoming{received: start, taken: start, told: start, pending: ring{base: start, end: start}}
}

// newStream returns a stream that ends in a file, whose descriptor it owns.
func newStream(fd int, n note, host bool) (*stream, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	st := &stream{file: os.NewFile(uintptr(fd), "stream"), what: n.what}
	here, there := n.from, n.to
	if host {
		here, there = there, here
	}
	if n.what == bothWays || (n.what == toBox) == host {
		st.out = newOutgoing(here)
		st.got = here
	}
	if n.what == bothWays || (n.what == toHost) == host {
		st.in = newIncoming(there)
		st.written = there
	}
	var err error
	if st.raw, err = st.file.SyscallConn(); err != nil {
		_ = st.file.Close()
	}
	return st, err
}

func (st *stream) close() {
	if st.file != nil {
		_ = st.file.Close()
	}
	if st.peer != nil {
		_ = st.peer.Close()
	}
}

// consumed returns up to where the bytes from the other end have been taken: at the
// host end those that wait in the pipe have not.
func (st *stream) consumed(host bool) int64 {
	if !host || st.raw == nil {
		return st.in.taken
	}
	waiting, f := 0, st.file
	if st.peer != nil {
		f = st.peer
	}
	st.writing.Lock()
	defer st.writing.Unlock()
	withFD(f, func(fd int) { waiting, _ = unix.IoctlGetInt(fd, unix.TIOCINQ) })
	return st.written - int64(waiting)
}

// reader opens the read end of the pipe that a stream's file writes to.
func (st *stream) reader() (f *os.File) {
	withFD(st.file, func(fd int) {
		f, _ = os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fd), os.O_RDONLY|unix.O_NONBLOCK, 0)
	})
	return f
}

// unread returns how many bytes wait in the file to be read.
func (st *stream) unread() (n int) {
	withFD(st.file, func(fd int) { n, _ = unix.IoctlGetInt(fd, unix.TIOCINQ) })
	return n
}

// total returns how many bytes have been written to what a stream reads.
func (st *stream) total() int64 {
	st.reading.Lock()
	defer st.reading.Unlock()
	return st.got + int64(st.unread())
}

// withFD calls use with the descriptor of a file, unless that is closed.
func withFD(f *os.File, use func(fd int)) {
	if rc, err := f.SyscallConn(); err == nil {
		_ = rc.Control(func(fd uintptr) { use(int(fd)) })
	}
}

// pump reads a stream's file into its ring until the file or the session ends. It is
// the goroutine of a stream that has bytes to send.
func (s *session) pump(st *stream) {
	var p []byte
	var n int
	var failed error
	try := func(fd uintptr) bool { // takes no lock that is held while the file is closed
		st.reading.Lock()
		defer st.reading.Unlock()
		n, failed = unix.Read(int(fd), p)
		st.got += int64(max(n, 0))
		return !errors.Is(failed, unix.EAGAIN)
	}
	want, carried := smallest, 0
	for {
		if p = s.room(st, want); p == nil {
			break
		}
		n = 0
		err := st.raw.Read(try)
		if errors.Is(err, os.ErrDeadlineExceeded) { // the caller leaves: only what is there is still read
			err = st.raw.Control(func(fd uintptr) { try(fd) })
		}
		if n > 0 {
			s.add(st, n)
		}
		if err != nil || n <= 0 && !errors.Is(failed, unix.EINTR) {
			break
		}
		if n == len(p) {
			want = min(4*want, wide)
		}
		if carried <= flow {
			if carried += n; carried > flow {
				withFD(st.file, func(fd int) { _, _ = unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, wide) }) // if it fails, the old size will do
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st.out.fin = true
	if st.what != bothWays && !s.box() {
		_ = st.file.Close()
	}
	s.wake()
}

// room waits until more of a stream may be read, and returns where to. It returns nil
// when no more may be read. A session without a line reads nothing: a command whose
// output nobody takes has to wait.
func (s *session) room(st *stream, want int) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		left := window - st.out.underWay()
		switch {
		case s.over || st.out.stopped && !s.box() || s.leaving && left <= 0:
			return nil
		case left > 0 && (s.line != nil || s.leaving) && !st.out.stopped:
			return st.out.ring.room(min(want, left))
		}
		s.changed.Wait()
	}
}

// add notes that n bytes were read into the ring of a stream.
func (s *session) add(st *stream, n int) {
	s.mu.Lock()
	st.out.ring.end += int64(n)
	s.kick()
	s.mu.Unlock()
}

// accept takes bytes of a stream from the other end. They go straight into the file;
// what that has no room for waits in memory. It is called by one goroutine at a time.
func (s *session) accept(st *stream, p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := st.in
	direct := st.raw != nil && !in.draining && !in.dead
	in.received += int64(len(p))
	if !direct {
		in.hold(p)
		s.hungry = false
		s.changed.Broadcast()
		return
	}
	s.mu.Unlock()
	n, err := st.write(p, false)
	s.mu.Lock()
	s.wrote(st, n, err)
	if n < len(p) && !in.dead {
		in.pending.base, in.pending.end = in.taken, in.taken
		in.hold(p[n:])
		s.drainLater(st)
	}
}

func (in *incoming) hold(p []byte) {
	if !in.dead {
		in.pending.add(p)
	}
}

// wrote notes that n bytes went into a stream's file.
func (s *session) wrote(st *stream, n int, err error) {
	in := st.in
	in.taken += int64(n)
	if err != nil && !errors.Is(err, unix.EAGAIN) {
		in.dead = true
		in.pending.drop(in.pending.end)
		s.wake()
	}
	if s.barred > 0 {
		s.changed.Broadcast()
	}
	if in.taken-in.told >= quantum && st.consumed(!s.box())-in.told >= quantum {
		s.kick()
	}
}

// write writes to a stream's file what there is room for, or waits until there is some.
func (st *stream) write(p []byte, wait bool) (n int, failed error) {
	err := st.raw.Write(func(fd uintptr) bool {
		st.writing.Lock()
		defer st.writing.Unlock()
		for {
			if n, failed = unix.Write(int(fd), p); !errors.Is(failed, unix.EINTR) {
				st.written += int64(max(n, 0))
				return !wait || !errors.Is(failed, unix.EAGAIN)
			}
		}
	})
	return max(n, 0), errors.Join(err, failed)
}

// drainLater begins to write what waits to a stream's file. The session's mutex is held.
func (s *session) drainLater(st *stream) {
	st.in.draining = true
	s.workers.Go(func() { s.drain(st) })
}

func (s *session) drain(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := st.in
	for in.pending.held() > 0 && !in.dead {
		p := in.pending.at(in.taken, maxFrame)
		s.mu.Unlock()
		n, err := st.write(p, true)
		s.mu.Lock()
		in.pending.drop(in.taken + int64(n))
		s.wrote(st, n, err)
	}
	in.draining = false
	s.finish(st)
}

// finish ends a stream's file once all bytes of a stream that has ended are in it.
func (s *session) finish(st *stream) {
	in := st.in
	if !in.fin || in.draining || in.keep || st.file == nil {
		return
	}
	s.changed.Broadcast()
	if st.what != bothWays {
		if !s.box() && st.peer == nil && st.unread() > 0 {
			st.peer = st.reader() // it goes on counting
		}
		_ = st.file.Close()
		return
	}
	withFD(st.file, func(fd int) { _ = unix.Shutdown(fd, unix.SHUT_WR) }) // a terminal stays as it is
}
