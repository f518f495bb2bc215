package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/core"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/filelock"
	"sandbox/core/sockets"
)

// shim holds this process's connections to the shim of a home. It keeps idle
// connections: the next request need not connect, and an open connection tells
// the shim that it is still needed.
type shim struct {
	home     string
	programs paths
	settles  bool // see settle

	mu     sync.Mutex
	idle   []*wire.Conn
	closed bool
}

// maxIdle is how many idle connections are kept. More are needed only in bursts.
const maxIdle = 8

// ask sends one request and reads its answer into v; see [shim.askAgain].
func (s *shim) ask(ctx context.Context, t wire.Type, body, v any, fds ...int) error {
	_, err := s.askAgain(ctx, t, body, v, fds...)
	return err
}

// askAgain is ask, and tells whether the request was sent twice. If the shim has
// gone, it is sent once more, to a new shim, in two cases: on a kept connection,
// whose shim may have gone while it was idle, and for a create, which names its
// box. The shim that has gone may have done it. A request with descriptors has a new
// connection, so that it is sent once: what it reads or writes is there once.
func (s *shim) askAgain(ctx context.Context, t wire.Type, body, v any, fds ...int) (twice bool, _ error) {
	for again := true; ; again = false {
		conn, kept, err := s.connection(ctx, len(fds) > 0)
		if err != nil {
			return !again, err
		}
		err = conn.Ask(ctx, t, body, v, fds...)
		if err == nil || fault.Classified(err) {
			s.keep(conn)
			return !again, err
		}
		_ = conn.Close()
		switch {
		case ctx.Err() != nil:
			return !again, fault.Of(fmt.Errorf("ask the shim: %w", ctx.Err()))
		case again && wire.CutOff(err) && (kept || t == wire.TypeCreate):
			s.drop() // the other kept connections have lost their shim too
		default:
			return !again, fault.Wrap(fault.Engine, err, "the shim of %s has died; see %s", s.home, s.log())
		}
	}
}

// connection returns a kept connection, or else, and always if fresh, a new one. It
// starts the shim if none runs.
func (s *shim) connection(ctx context.Context, fresh bool) (conn *wire.Conn, kept bool, err error) {
	s.mu.Lock()
	if n := len(s.idle); n > 0 && !fresh {
		conn, s.idle = s.idle[n-1], s.idle[:n-1]
		s.mu.Unlock()
		return conn, true, nil
	}
	s.mu.Unlock()
	conn, err = s.dial(ctx)
	if err != nil && (gone(err) || errors.Is(err, unix.EACCES)) { // without access, start fails with the reason
		conn, err = s.start(ctx)
	}
	return conn, false, err
}

// keep keeps a connection for the next request. One whose request came or ended after
// close ends as the others did.
func (s *shim) keep(conn *wire.Conn) {
	s.mu.Lock()
	closed := s.closed
	kept := !closed && len(s.idle) < maxIdle
	if kept {
		s.idle = append(s.idle, conn)
	}
	s.mu.Unlock()
	if closed && s.settles {
		_ = settle(conn) // it ends here whatever the shim says
	}
	if !kept {
		_ = conn.Close()
	}
}

// drop closes the kept connections.
func (s *shim) drop() {
	for _, conn := range s.take() {
		_ = conn.Close()
	}
}

// take returns the kept connections, which are the caller's from then on.
func (s *shim) take() []*wire.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.idle
	s.idle = nil
	return kept
}

// settleTimeout bounds how long settle waits for the shim: a busy host takes seconds to
// make a spare, which takes milliseconds on others.
const settleTimeout = 10 * time.Second

// settle waits until no spare is being made. From then on the shim makes none for this
// connection, which the caller closes. Without it, one may be in the making when the
// connection has been closed.
func settle(conn *wire.Conn) error {
	if err := conn.SetTimeout(settleTimeout); err != nil {
		return err
	}
	return conn.Ask(context.Background(), wire.TypeSettle, nil, nil)
}

// close ends the use of the shim. A shim that has died makes no spare, though one that came
// after it may, and one that hangs is not waited for again.
func (s *shim) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	settles := s.settles
	for _, conn := range s.take() {
		if settles {
			settles = !errors.Is(settle(conn), os.ErrDeadlineExceeded)
		}
		_ = conn.Close()
	}
}

// gone tells whether a dial failed because no shim listens.
func gone(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ECONNREFUSED) || wire.CutOff(err)
}

// dial connects to the shim and checks that it has the version of this process.
func (s *shim) dial(ctx context.Context) (*wire.Conn, error) {
	dir, err := sockets.OpenDir(filepath.Join(s.home, "engine"))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	conn, err := wire.Dial(dir, wire.ShimSocket)
	if err != nil {
		return nil, err
	}
	hello, err := greeting(ctx, conn)
	if err != nil {
		_ = conn.Close()
		if gone(err) || fault.Classified(err) {
			return nil, err
		}
		return nil, fault.Wrap(fault.Engine, err, "the shim of %s does not answer; see %s", s.home, s.log())
	}
	if hello.Version != core.Version {
		_ = conn.Close()
		return nil, fault.New(fault.Engine, "the home's shim (process %d) is of version %s and this is %s: "+
			"install matching programs, and stop the boxes of the other version", hello.PID, hello.Version, core.Version)
	}
	return conn, nil
}

// helloTimeout bounds how long a shim may take to greet, which is the first thing that
// it does on a connection: it takes seconds where hundreds ask at once on a busy host.
const helloTimeout = 30 * time.Second

func greeting(ctx context.Context, conn *wire.Conn) (hello wire.Hello, err error) {
	if err := conn.SetTimeout(helloTimeout); err != nil {
		return hello, err
	}
	stop := context.AfterFunc(ctx, conn.Cut)
	defer stop()
	if err := conn.Answer(&hello); ctx.Err() != nil {
		return hello, fault.Of(fmt.Errorf("reach the shim: %w", ctx.Err()))
	} else if err != nil {
		return hello, err
	}
	return hello, conn.SetTimeout(0)
}

// start starts the shim and connects to it. When several processes try at once,
// a lock lets one of them start it, and the others connect to that one.
func (s *shim) start(ctx context.Context) (*wire.Conn, error) {
	if err := os.MkdirAll(filepath.Join(s.home, "engine"), 0o700); err != nil {
		return nil, fault.Disk(err, "make the home")
	}
	starting, err := filelock.Exclusive(ctx, filepath.Join(s.home, "engine", wire.StartLock))
	if err != nil {
		return nil, fault.Disk(err, "lock the home")
	}
	defer starting.Close()
	if conn, err := s.dial(ctx); err == nil || !gone(err) {
		return conn, err
	}
	if err := s.spawn(); err != nil {
		return nil, err
	}
	conn, err := s.dial(ctx)
	if err != nil && gone(err) {
		err = fault.Wrap(fault.Engine, err, "the shim of %s has died as it began; see %s", s.home, s.log())
	}
	return conn, err
}

// startTimeout bounds the wait for a new shim to become ready. It may first have
// to take over many boxes from a shim that died.
const startTimeout = 60 * time.Second

func (s *shim) spawn() error {
	exe, err := sealed(s.programs.shim)
	if err != nil {
		return err
	}
	defer exe.Close()
	program, err := sealed(s.programs.init)
	if err != nil {
		return err
	}
	defer program.Close()
	home, err := os.OpenFile(s.home, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fault.Disk(err, "open the home")
	}
	defer home.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("start the shim: %w", err)
	}
	defer null.Close()
	ready, theirs, err := os.Pipe()
	if err != nil {
		return fault.Wrap(fault.ResourceExhausted, err, "start the shim")
	}
	defer ready.Close()
	work := "serve"
	if os.Geteuid() != 0 {
		work = "enter" // and serve there, as the root of a user namespace
	}
	err = spawn(exe, []string{shimName, work, s.home}, shimEnv, null, null, null, home, program, theirs)
	_ = theirs.Close()
	if err != nil {
		return fault.Wrap(fault.Engine, err, "start the shim %s", s.programs.shim)
	}
	return s.awaitReady(ready)
}

// shimEnv is the whole environment of a shim. Nothing of the host process's
// environment reaches it.
var shimEnv = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}

func (s *shim) awaitReady(ready *os.File) error {
	if err := ready.SetReadDeadline(time.Now().Add(startTimeout)); err != nil {
		return fault.Wrap(fault.Internal, err, "wait for the shim")
	}
	line, err := io.ReadAll(io.LimitReader(ready, wire.MaxTalk))
	if string(line) == wire.Ready {
		return nil
	}
	var why wire.Error
	if json.Unmarshal(line, &why) == nil {
		return fmt.Errorf("start the shim: %w", why.Failure())
	}
	if err == nil {
		err = errors.New("it ended before it could serve")
	}
	return fault.Wrap(fault.Engine, err, "start the shim %s; see %s", s.programs.shim, s.log())
}

func (s *shim) log() string { return filepath.Join(s.home, "engine", wire.ShimLog) }

// sealed returns a copy of a program in memory that nobody can change: a
// program that runs as root beside boxes must not be a file that a box could
// ever reach.
func sealed(path string) (*os.File, error) {
	src, err := os.Open(path)
	if err != nil {
		return nil, fault.Wrap(fault.Engine, err, "open the shim %s", path)
	}
	defer src.Close()
	fd, err := memfd(filepath.Base(path))
	if err != nil {
		return nil, fault.Wrap(fault.Engine, err, "make a memory file for %s", path)
	}
	f := os.NewFile(uintptr(fd), path)
	if _, err = io.Copy(f, src); err == nil {
		err = seal(f)
	}
	if err != nil {
		_ = f.Close()
		return nil, fault.Wrap(fault.Engine, err, "copy the shim %s into memory", path)
	}
	return f, nil
}

// memfd returns a new memory file that can be executed. Kernels before 6.3
// neither know nor need the flag for that.
func memfd(name string) (int, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) {
		fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	return fd, err
}

// seal protects the file against every change. Its mode lets others execute but
// not read it, which makes a process that runs it not dumpable: this closes a
// box's init, which runs it, to the box.
func seal(f *os.File) error {
	if err := f.Chmod(0o511); err != nil {
		return err
	}
	for try := 1; ; try++ {
		_, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE)
		if !errors.Is(err, unix.EBUSY) || try == sealTries {
			return err
		}
	}
}

// sealTries is how often a seal is tried while the kernel uses a page of the file for
// itself, as it does when it moves memory. Each try waits for that, for 0.15 s at most
// (memfd_wait_for_pins in Linux's mm/memfd.c), which is too short on a busy host.
const sealTries = 20
