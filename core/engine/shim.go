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

// shim is this process's way to the shim of a home. It keeps idle
// connections: they save the next request a connect, and tell the shim that
// it is needed.
type shim struct {
	home     string
	programs paths

	mu     sync.Mutex
	idle   []*wire.Conn
	closed bool
}

// maxIdle is how many connections are kept; more are only used in bursts.
const maxIdle = 8

// ask makes one request and reads its answer into v. A connection that was
// kept may have lost its shim meanwhile, and a create names its box: both
// are asked once more, of a new shim.
func (s *shim) ask(ctx context.Context, t wire.Type, body, v any, fds ...int) error {
	for again := true; ; again = false {
		conn, kept, err := s.connection(ctx)
		if err != nil {
			return err
		}
		err = exchange(ctx, conn, t, body, v, fds)
		if err == nil || fault.Classified(err) {
			s.keep(conn)
			return err
		}
		_ = conn.Close()
		switch {
		case ctx.Err() != nil:
			return fault.Of(fmt.Errorf("ask the shim: %w", ctx.Err()))
		case again && cutOff(err) && (kept || t == wire.TypeCreate):
			s.drop() // the others are as old
		default:
			return fault.Wrap(fault.Engine, err, "the shim of %s has died; see %s", s.home, s.log())
		}
	}
}

// cutOff tells whether the other side of a connection has gone.
func cutOff(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET)
}

// exchange sends a request and waits for its answer, or for the end of ctx.
func exchange(ctx context.Context, conn *wire.Conn, t wire.Type, body, v any, fds []int) error {
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, conn.Cut)
		defer stop()
	}
	if err := conn.Send(t, body, fds...); err != nil {
		return err
	}
	return answer(conn, v)
}

// answer receives a frame and reads its body into v; an Error comes back as
// the failure that it names.
func answer(conn *wire.Conn, v any) error {
	f, err := conn.Recv()
	if err != nil {
		return err
	}
	f.CloseFDs()
	if f.Type == wire.TypeError {
		return failure(f)
	}
	if v == nil {
		return nil
	}
	return f.Decode(v)
}

// failure returns the classified failure that an Error frame carries.
func failure(f wire.Frame) error {
	var e wire.Error
	if err := f.Decode(&e); err != nil {
		return err
	}
	return classify(e)
}

func classify(e wire.Error) error {
	return fault.New(e.Kind, "%s", e.Message)
}

// connection returns a kept connection or makes one, starting the shim when
// there is none.
func (s *shim) connection(ctx context.Context) (conn *wire.Conn, kept bool, err error) {
	s.mu.Lock()
	if n := len(s.idle); n > 0 {
		conn, s.idle = s.idle[n-1], s.idle[:n-1]
		s.mu.Unlock()
		return conn, true, nil
	}
	s.mu.Unlock()
	conn, err = s.dial(ctx)
	if err != nil && (gone(err) || errors.Is(err, unix.EACCES)) { // start says who may
		conn, err = s.start(ctx)
	}
	return conn, false, err
}

func (s *shim) keep(conn *wire.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.idle) >= maxIdle {
		_ = conn.Close()
		return
	}
	s.idle = append(s.idle, conn)
}

// drop closes the kept connections.
func (s *shim) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, conn := range s.idle {
		_ = conn.Close()
	}
	s.idle = nil
}

func (s *shim) close() error {
	s.drop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// gone tells whether a dial failed because no shim listens.
func gone(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ECONNREFUSED) || cutOff(err)
}

// dial connects to the shim and checks that it is of this version.
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

// helloTimeout bounds what a shim takes to greet: it does so before all else.
const helloTimeout = 10 * time.Second

func greeting(ctx context.Context, conn *wire.Conn) (hello wire.Hello, err error) {
	if err := conn.SetTimeout(helloTimeout); err != nil {
		return hello, err
	}
	stop := context.AfterFunc(ctx, conn.Cut)
	defer stop()
	if err := answer(conn, &hello); ctx.Err() != nil {
		return hello, fault.Of(fmt.Errorf("reach the shim: %w", ctx.Err()))
	} else if err != nil {
		return hello, err
	}
	return hello, conn.SetTimeout(0)
}

// start starts the shim. Of several processes that want to, one does; the
// others find it there.
func (s *shim) start(ctx context.Context) (*wire.Conn, error) {
	if os.Geteuid() != 0 {
		return nil, fault.New(fault.Unsupported, "boxes need root: run this as root, for example with sudo")
	}
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
	return s.dial(ctx)
}

// startTimeout bounds the wait for a shim, which may have many boxes of a
// dead one to take over.
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
		return fault.Wrap(fault.Internal, err, "start the shim")
	}
	defer null.Close()
	ready, theirs, err := os.Pipe()
	if err != nil {
		return fault.Wrap(fault.ResourceExhausted, err, "start the shim")
	}
	defer ready.Close()
	err = spawn(exe, []string{shimName, "serve", s.home}, shimEnv, null, null, null, home, program, theirs)
	_ = theirs.Close()
	if err != nil {
		return fault.Wrap(fault.Engine, err, "start the shim %s", s.programs.shim)
	}
	return s.awaitReady(ready)
}

// shimEnv is all the environment that a shim has: nothing of the host's.
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
		return fmt.Errorf("start the shim: %w", classify(why))
	}
	if err == nil {
		err = errors.New("it ended before it could serve")
	}
	return fault.Wrap(fault.Engine, err, "start the shim %s; see %s", s.programs.shim, s.log())
}

func (s *shim) log() string { return filepath.Join(s.home, "engine", wire.ShimLog) }

// sealed copies a program into memory that nobody can change: what runs as
// root beside boxes must not be a file that a box could ever reach.
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

// memfd makes a memory file that can be executed; kernels before 6.3 don't
// know the flag that asks for it, and don't need it.
func memfd(name string) (int, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) {
		fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	return fd, err
}

// seal closes the file to every change. Who may execute but not read it is not
// dumpable: a box's init, which runs it, is closed to the box.
func seal(f *os.File) error {
	if err := f.Chmod(0o511); err != nil {
		return err
	}
	_, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE)
	return err
}
