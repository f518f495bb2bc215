// Package guest is the body of sandbox-init, process 1 of every box. It reaps
// every process of the box that ends, starts commands as its children, each in a
// group of its own, owns their terminals, and passes the ends of their pipes to
// host processes.
//
// Init must survive whatever the box does to it. Every signal is caught and
// dropped. The box can't reach init's memory and descriptors, as init is not
// dumpable. Init's children do not get the capabilities that it keeps.
package guest

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/wire"
)

// These are the descriptors that the shim starts init with.
const (
	selfFD    = 3 // init's own program, closed at once
	controlFD = 4 // init's end of a socket pair with the shim
)

// guest is the state of init for its box.
type guest struct {
	config  wire.Config
	tree    tree     // the directory of the execs' groups
	oom     oomKills // the count of OOM kills in the commands' cgroup
	pts     int      // O_PATH descriptor of the box's /dev/pts
	null    *os.File // /dev/null
	spawner *spawner
	pod     *pod   // nil in a box that the shim made
	quit    func() // ends init, once the box has been stopped

	reaping  sync.Mutex // held before mu
	mu       sync.Mutex
	execs    map[string]*exec // by id
	order    []*exec          // oldest first
	children map[int]*exec    // execs whose own process runs, by its PID
	left     []*exec          // execs that have ended but whose groups still have processes
	stopping bool
	ending   *ending // set with stopping
	paused   bool
	empty    chan struct{} // closed once no child is left; set by a stop that waits for that

	clocks clocks // of the execs
	use    use
	main   *service // the main command; nil for none

	telling sync.WaitGroup // requests that wait for an exec's end; Add needs mu and not stopping

	started, failed atomic.Int64
	stdin, output   atomic.Int64 // bytes, of all execs
}

// init keeps the main thread for Main, so that the spawner gets another one:
// cgroup v1 takes the main thread for the whole process.
func init() { runtime.LockOSThread() }

// Main runs the box until it is stopped. It returns only if it fails.
func Main() error {
	failed := make(chan error)
	go func() { failed <- run() }() // in a goroutine that is not bound to the main thread
	return <-failed
}

func run() error {
	_ = unix.Close(selfFD)
	children, err := harden(droppedPC)
	if err != nil {
		return err
	}
	control, err := nonblocking(controlFD, "shim")
	if err != nil {
		return err
	}
	g, listener, err := begin(control)
	if err != nil {
		return err
	}
	go g.reap(children)
	return g.serve(listener)
}

// harden protects init from whatever the box does, and returns the channel that tells of
// children that have ended. Signals get the handler at an address.
func harden(handler uintptr) (<-chan os.Signal, error) {
	if err := handleSignals(handler); err != nil {
		return nil, err
	}
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("close init to the box: %w", err)
	}
	keepCode()
	return children, nil
}

// handleSignals gives all signals a handler that does nothing for those that come from
// the box, except those that Go's runtime needs and SIGCHLD. The default action is not enough: the kernel
// drops a signal with default action that is sent to process 1 from inside, but
// not while the thread that it is sent to blocks the signal, as one of Go's
// threads always does. Ignoring them is no choice either, because commands would
// inherit that. (signal.Notify for all of them costs 130 thread switches, 4 ms a
// box.)
func handleSignals(handler uintptr) error {
	var drop sigaction
	if err := drop.read(unix.SIGURG); err != nil { // to take over the flags that Go sets
		return err
	}
	drop.handler = handler
	for sig := unix.Signal(1); sig <= 64; sig++ {
		action := drop
		switch sig {
		case unix.SIGKILL, unix.SIGSTOP, unix.SIGURG, unix.SIGCHLD:
			continue
		case unix.SIGILL, unix.SIGTRAP, unix.SIGBUS, unix.SIGFPE, unix.SIGSEGV, unix.SIGSYS:
			// A fault in init itself must end it. If the box sends one of these
			// signals, which dump core, the kernel drops it even while blocked.
			action = sigaction{}
		}
		if err := action.set(sig); err != nil {
			return err
		}
	}
	return nil
}

// droppedPC is the address of a signal handler that does nothing.
var droppedPC uintptr

// sigaction is the kernel's struct sigaction.
type sigaction struct {
	handler, flags, restorer uintptr
	mask                     uint64
}

func (a *sigaction) read(sig unix.Signal) error { return rtSigaction(sig, nil, a) }
func (a *sigaction) set(sig unix.Signal) error  { return rtSigaction(sig, a, nil) }

func rtSigaction(sig unix.Signal, set, old *sigaction) error {
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(old)), 8, 0, 0)
	if errno != 0 {
		return fmt.Errorf("drop signal %d: %w", sig, errno)
	}
	return nil
}

// begin prepares the box, waits until the shim says which one it is, and sets it
// up. It returns the listening socket too.
func begin(control *wire.Conn) (*guest, int, error) {
	defer control.Close()
	g := &guest{execs: map[string]*exec{}, children: map[int]*exec{}, quit: func() { os.Exit(0) }}
	listener, err := g.prepare(control)
	if err != nil {
		return nil, 0, err
	}
	f, err := g.settings(control)
	if err != nil {
		return nil, 0, err
	}
	if err := f.Decode(&g.config); err != nil {
		return nil, 0, err
	}
	if err := g.become(); err != nil {
		return nil, 0, err
	}
	g.use.last = time.Now() // it may have been a spare for long
	// A shim that has died meanwhile may have recorded the box already. If it has
	// not, the next one ends this init.
	_ = control.Send(wire.TypeReady, nil)
	return g, listener, nil
}

// prepare does what is the same for every box, and returns the listening socket.
func (g *guest) prepare(control *wire.Conn) (listener int, err error) {
	f, err := receive(control, wire.TypePrepare)
	if err != nil {
		return 0, err
	}
	if len(f.FDs) < 3 {
		return 0, fmt.Errorf("%w: got %d descriptors, want 3 and lists of tasks", wire.ErrProtocol, len(f.FDs))
	}
	g.oom.File = os.NewFile(uintptr(f.FDs[2]), "oom kills")
	if err := g.open(f.FDs[1]); err != nil {
		return 0, err
	}
	if err := loopbackUp(); err != nil {
		return 0, err
	}
	if err := hideInit(); err != nil {
		return 0, err
	}
	if g.spawner, err = startSpawner(f.FDs[3:]); err != nil {
		return 0, err
	}
	return f.FDs[0], control.Send(wire.TypeReady, nil)
}

// become gives the box its host name and its files in /etc.
func (g *guest) become() error {
	if err := unix.Sethostname([]byte(g.config.Hostname)); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	if err := writeFiles("/etc", g.config.Files); err != nil {
		return err
	}
	if g.config.Watched != nil {
		go g.watchMemory(g.config.Watched.MemoryBytes)
	}
	var err error
	g.spawner.do(func() { err = g.fence() })
	return err
}

// receive returns the next frame of the shim, which must be of type t.
func receive(control *wire.Conn, t wire.Type) (wire.Frame, error) {
	f, err := control.Recv()
	return expected(f, t, err)
}

// expected returns a frame that was received with err, and an error unless it is of
// type t.
func expected(f wire.Frame, t wire.Type, err error) (wire.Frame, error) {
	if err == nil && f.Type != t {
		err = wire.ErrProtocol
	}
	if err != nil {
		return f, fmt.Errorf("wait for frame %d of the shim: got frame %d: %w", t, f.Type, err)
	}
	return f, nil
}

// open opens the files that every exec needs. It does so before anything of the
// box has run, because the box may change what these names lead to.
func (g *guest) open(treeFD int) (err error) {
	if g.tree, err = newTree(treeFD); err != nil {
		return err
	}
	return g.openDevices()
}

func (g *guest) openDevices() (err error) {
	if g.pts, err = unix.Open("/dev/pts", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		return fmt.Errorf("open /dev/pts: %w", err)
	}
	if g.null, err = os.OpenFile("/dev/null", os.O_RDWR, 0); err != nil {
		return err
	}
	return nil
}

// hideInit covers the directories of /proc/1 that the box's root may not read
// with an empty one. The box's root may not read them because init is not
// dumpable, and so `ls -R /` would fail in every box. Init can't use them either:
// it must open no /proc/self/fd/N from here on.
func hideInit() error {
	const empty = "/proc/1/fd"
	const flags = unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	if err := unix.Mount("tmpfs", empty, "tmpfs", flags, "mode=555,size=4k"); err != nil {
		return fmt.Errorf("cover %s: %w", empty, err)
	}
	for _, name := range []string{"fdinfo", "map_files", "ns", "task"} {
		err := unix.Mount(empty, "/proc/1/"+name, "", unix.MS_BIND, "")
		if err != nil && !errors.Is(err, unix.ENOENT) { // a kernel without checkpoints has no map_files
			return fmt.Errorf("cover /proc/1/%s: %w", name, err)
		}
	}
	return nil
}

// loopbackUp brings the loopback interface up, which is all the network that a
// box without a network has.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("bring the loopback up: %w", err)
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("bring the loopback up: %w", err)
	}
	return nil
}

// serve accepts connections until that fails. Each connection gets a goroutine
// of its own.
func (g *guest) serve(fd int) error {
	l, err := wire.NewListener(fd)
	if err != nil {
		return err
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go g.handle(conn)
	}
}

func nonblocking(fd int, name string) (*wire.Conn, error) {
	unix.CloseOnExec(fd)
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	return wire.NewConn(fd, name), nil
}
