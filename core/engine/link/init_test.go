package link_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
)

// fakeInit speaks init's protocol and passes real pipes and terminals. Its commands are
// goroutines.
type fakeInit struct {
	tasks sync.WaitGroup

	mu      sync.Mutex
	conns   map[*wire.Conn]bool
	execs   map[string]*fakeExec
	frames  []wire.Frame // requests on the connections of execs, in their order
	changed sync.Cond
	closed  bool
}

type fakeExec struct {
	id            string
	tty           bool
	out, err, in  *os.File // init's own ends
	cout, cerr    *os.File // the command's ends
	cin           *os.File
	reader        *wire.Conn
	keep          bool
	end           *api.ExitStatus
	released      bool
	begun, cancel chan struct{}
	once          sync.Once
}

func newInit(t testing.TB) *fakeInit {
	i := &fakeInit{conns: map[*wire.Conn]bool{}, execs: map[string]*fakeExec{}}
	i.changed.L = &i.mu
	t.Cleanup(i.close)
	return i
}

// close ends all connections and commands.
func (i *fakeInit) close() {
	i.mu.Lock()
	i.closed = true
	for c := range i.conns {
		c.Cut()
	}
	for _, e := range i.execs {
		e.close()
	}
	i.mu.Unlock()
	i.tasks.Wait()
}

// close ends a command, and closes all ends. i.mu is held.
func (e *fakeExec) close() {
	e.stop()
	for _, f := range []*os.File{e.out, e.err, e.in, e.cout, e.cerr, e.cin} {
		if f != nil {
			_ = f.Close()
		}
	}
}

func (e *fakeExec) stop() { e.once.Do(func() { close(e.cancel) }) }

// connect is what link.Serve calls.
func (i *fakeInit) connect() (*wire.Conn, error) {
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	c := wire.NewConn(p[0], "init")
	i.mu.Lock()
	i.conns[c] = true
	i.mu.Unlock()
	i.tasks.Go(func() {
		i.serve(c)
		i.mu.Lock()
		delete(i.conns, c)
		_ = c.Close()
		i.mu.Unlock()
	})
	return wire.NewConn(p[1], "host"), nil
}

func (i *fakeInit) serve(c *wire.Conn) {
	f, err := c.Recv()
	if err != nil {
		return
	}
	switch f.Type {
	case wire.TypeStart:
		var r wire.Start
		if f.Decode(&r) == nil {
			i.follow(c, i.start(r))
		}
	case wire.TypeAttach:
		var r wire.Attach
		if f.Decode(&r) == nil {
			i.attach(c, r.ID)
		}
	case wire.TypeFind:
		_ = c.Send(wire.TypeExec, wire.Exec{ID: "exec_found"})
	case wire.TypeExecs: // a long list, of long frames
		for n := range 40 {
			_ = c.Send(wire.TypeExec, wire.Exec{ID: "exec_" + strconv.Itoa(n), Cmd: []string{string(make([]byte, 20_000))}})
		}
		_ = c.Send(wire.TypeListed, nil)
	case wire.TypeStop: // waits until the host leaves
		_, _ = c.Recv()
	case wire.TypeFiles:
		i.transfer(c)
	default:
		_ = c.Send(wire.TypeError, wire.Error{Kind: fault.Engine, Message: "unknown"})
	}
}

func file(fd int) *os.File {
	_ = unix.SetNonblock(fd, true)
	return os.NewFile(uintptr(fd), "fake")
}

func pipe() (r, w *os.File) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		panic(err)
	}
	return file(p[0]), file(p[1])
}

func (i *fakeInit) start(r wire.Start) *fakeExec {
	e := &fakeExec{tty: r.TTY, begun: make(chan struct{}), cancel: make(chan struct{}), keep: r.KeepStdin}
	if r.TTY {
		master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err != nil {
			panic(err)
		}
		_ = unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0)
		slave, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(master), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
		if errno != 0 {
			panic(errno)
		}
		raw, _ := unix.IoctlGetTermios(int(slave), unix.TCGETS)
		raw.Oflag, raw.Lflag, raw.Iflag = 0, 0, 0
		_ = unix.IoctlSetTermios(int(slave), unix.TCSETS, raw)
		e.out, e.cout = file(master), file(int(slave))
		e.cin = e.cout
	} else {
		e.out, e.cout = pipe()
		e.err, e.cerr = pipe()
		if r.Stdin {
			e.cin, e.in = pipe()
		}
	}
	i.mu.Lock()
	e.id = "exec_" + strconv.Itoa(len(i.execs))
	i.execs[e.id] = e
	if i.closed { // the host has left, and this start is read only now
		e.close()
	}
	i.mu.Unlock()
	i.tasks.Go(func() { i.command(e, r.Cmd) })
	return e
}

// noise returns bytes that are the same for the same seed.
func noise(seed uint64, n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)})
	_, _ = r.Read(b)
	return b
}

// command runs one of the fake commands and reports its end.
func (i *fakeInit) command(e *fakeExec, cmd []string) {
	<-e.begun
	number := func(at int) int { n, _ := strconv.Atoi(cmd[at]); return n }
	code := 0
	if len(cmd) == 0 {
		cmd = []string{"true"}
	}
	switch cmd[0] {
	case "true":
	case "write": // write N SEED: to stdout and stderr at once
		var wg sync.WaitGroup
		for s, f := range []*os.File{e.cout, e.cerr} {
			if f != nil {
				wg.Go(func() { pieces(f, noise(uint64(number(2)+s), number(1))) })
			}
		}
		wg.Wait()
	case "fill": // fill N: zeros to stdout
		b := make([]byte, 256<<10)
		for left := number(1); left > 0; left -= len(b) {
			_, _ = e.cout.Write(b[:min(left, len(b))])
		}
	case "cat":
		_, _ = io.Copy(struct{ io.Writer }{e.cout}, struct{ io.Reader }{e.cin})
	case "deaf": // closes its input
		_ = e.cin.Close()
		<-e.cancel
	case "sleep": // says so, and waits until it is canceled
		_, _ = e.cout.WriteString("asleep")
		<-e.cancel
		code = 7
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, f := range []*os.File{e.cout, e.cerr, e.cin} {
		if f != nil {
			_ = f.Close()
		}
	}
	e.end = &api.ExitStatus{Status: api.ExecSucceeded, ExitCode: code}
	if e.reader != nil {
		_ = e.reader.Send(wire.TypeExited, e.end)
	}
}

// pieces writes b in pieces of many sizes.
func pieces(f *os.File, b []byte) {
	r := rand.New(rand.NewPCG(1, uint64(len(b))))
	for len(b) > 0 {
		n := min(len(b), 1+r.IntN(1<<r.IntN(17)))
		if _, err := f.Write(b[:n]); err != nil {
			return
		}
		b = b[n:]
	}
}

func (i *fakeInit) attach(c *wire.Conn, id string) {
	i.mu.Lock()
	e := i.execs[id]
	why := ""
	switch {
	case e == nil:
		why = "no such exec"
	case e.released:
		why = "released"
	case e.reader != nil:
		why = "the exec's output has another reader"
	}
	i.mu.Unlock()
	if why != "" {
		_ = c.Send(wire.TypeError, wire.Error{Kind: fault.InvalidState, Message: why})
		return
	}
	i.follow(c, e)
}

func (i *fakeInit) follow(c *wire.Conn, e *fakeExec) {
	i.mu.Lock()
	var fds []int
	for _, f := range []*os.File{e.out, e.err, e.in} {
		if f != nil {
			fds = append(fds, int(f.Fd()))
		}
	}
	x := wire.Exec{ID: e.id, PID: 5, Cmd: []string{"x"}, TTY: e.tty, Stdin: e.in != nil, CreatedAt: time.Now()}
	_ = c.Send(wire.TypeStarted, x, fds...)
	for _, f := range []*os.File{e.out, e.err, e.in} {
		if f != nil {
			_ = unix.SetNonblock(int(f.Fd()), true) // File.Fd sets it to blocking mode
		}
	}
	if e.in != nil && !e.keep {
		_ = e.in.Close()
		e.in = nil
	}
	e.reader = c
	if e.end != nil {
		_ = c.Send(wire.TypeExited, e.end)
	}
	select {
	case <-e.begun:
	default:
		close(e.begun)
	}
	i.mu.Unlock()
	i.requests(c, e)
	i.mu.Lock()
	e.reader = nil
	i.mu.Unlock()
}

func (i *fakeInit) requests(c *wire.Conn, e *fakeExec) {
	for {
		f, err := c.Recv()
		if err != nil {
			return
		}
		i.mu.Lock()
		i.frames = append(i.frames, f)
		i.changed.Broadcast()
		switch f.Type {
		case wire.TypeCancel:
			e.stop()
		case wire.TypeCloseStdin:
			if e.in != nil {
				_ = e.in.Close()
				e.in = nil
			}
		case wire.TypeRelease:
			e.released = true
		}
		i.mu.Unlock()
		if f.Type == wire.TypeRelease {
			return
		}
	}
}

// got waits until init has received as many requests of a type on the connections of
// execs.
func (i *fakeInit) got(t wire.Type, n int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for count := 0; ; i.changed.Wait() {
		count = 0
		for _, f := range i.frames {
			if f.Type == t {
				count++
			}
		}
		if count >= n {
			return
		}
	}
}

// deafen closes the input of a command.
func (i *fakeInit) deafen(id string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	_ = i.execs[id].cin.Close()
}

// transfer passes a pipe and a socket. What comes over the socket goes into the pipe,
// then back over the socket.
func (i *fakeInit) transfer(c *wire.Conn) {
	r, w := pipe()
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		panic(err)
	}
	talk := file(p[0])
	_ = c.Send(wire.TypeMoving, nil, int(r.Fd()), p[1])
	_, _ = r.Close(), unix.Close(p[1])
	i.tasks.Go(func() {
		defer talk.Close()
		defer w.Close()
		b := make([]byte, 5)
		if _, err := io.ReadFull(talk, b); err != nil {
			return
		}
		_, _ = w.Write(noise(9, 1<<20))
		_ = w.Close()
		_, _ = fmt.Fprintf(talk, "%s done", b)
	})
	_, _ = c.Recv()
	_ = talk.SetDeadline(time.Unix(1, 0))
	_ = w.SetDeadline(time.Unix(1, 0))
}
