package shim

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runc/libcontainer/configs"
	"golang.org/x/sys/unix"

	"sandbox/core/engine/process"
	"sandbox/core/engine/record"
	"sandbox/core/engine/shim/network"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/sockets"
)

// initTimeout is how long a new init may take to answer.
const initTimeout = 30 * time.Second

// errorsOnly is the number of logrus's level for errors. At the default level
// the start of a box logs sixty lines, each of which wakes this process.
const errorsOnly = "2"

// launcher makes the kernel objects of boxes and starts their init.
type launcher struct {
	home    string
	state   string   // libcontainer's directory
	program *os.File // sandbox-init
	network *network.Host
	unclean *sync.Map // by id, the boxes of which something could not be removed
	log     *slog.Logger
}

// life is the part of a box that exists only while the box runs.
type life struct {
	init   process.Identity
	handle *process.Handle
	reap   func()       // collects init once it has ended
	net    *network.Box // nil for network None
}

// launch starts a box. On failure nothing of it is left in the kernel.
func (l launcher) launch(b record.Box) (f *life, err error) {
	if err := l.cleanAgain(b.ID); err != nil {
		return nil, err
	}
	full := exhausted(l.home)
	net, err := l.reservePorts(b.Options)
	if err != nil {
		return nil, engineFault(err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, closeNetwork(net))
		}
	}()
	tree := stagedTree(b.ID)
	defer tree.unmount() // by then init has the tree in its own mount namespace
	mounted := make(chan error, 1)
	go func() { mounted <- l.mount(&tree, b) }() // while the cgroups are made
	control, child, err := socketPair()
	if err != nil {
		<-mounted //nolint:errcheck // its failure would say less
		return nil, fault.Wrap(fault.ResourceExhausted, err, "make a socket")
	}
	defer control.Close()
	defer child.Close()
	life, err := l.run(b, tree.root, child, mounted)
	if err != nil {
		return nil, l.explain(err, tree.root, full)
	}
	_ = child.Close() // only init has this end now, so its death reads as EOF
	if err := l.greet(b, life.init.PID, net, control); err != nil {
		l.end(b.ID, life)
		return nil, l.explain(fmt.Errorf("start the box's init: %w", err), tree.root, full)
	}
	life.net = net
	return life, nil
}

// mount makes the box's root file system, with everything that is mounted in it
// from outside the box: /dev and the volumes.
func (l launcher) mount(t *tree, b record.Box) error {
	layers := b.Image.Layers
	if b.Options.RootfsWithin != "" { // opened again: its symbolic links may lead elsewhere by now
		root, err := openRootfs(b.Options)
		if err != nil {
			return err
		}
		defer root.Close()
		layers = []string{fdPath(root)}
	}
	if err := t.mount(record.Dir(l.home, b.ID), layers, b.UIDBase, b.Options.DiskSizeGB, b.Options.AutoRemove); err != nil {
		return fault.Disk(err, "make the box's root file system")
	}
	if err := checkMountPoints(t.root); err != nil {
		return err
	}
	if err := mountDev(t.root, b.UIDBase, b.Options.MemoryMiB); err != nil {
		return err
	}
	return mountVolumes(l.home, t.root, b.Options.Volumes, b.UIDBase)
}

// run makes the box's namespaces, mounts and groups, and starts its init once
// its root file system is mounted. It works on a thread of its own, which ends
// afterwards; groups.enter says why.
func (l launcher) run(b record.Box, root string, control *os.File, mounted <-chan error) (f *life, err error) {
	c, err := config(b, root)
	if err != nil {
		<-mounted //nolint:errcheck // its failure would say less
		return nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked, so the thread ends with this goroutine
		if f, err = l.runHere(b, c, control, mounted); err != nil {
			leaveGroups() // groups with a thread in them could not be removed
			l.clean(b.ID)
		}
	}()
	<-done
	return f, err
}

func (l launcher) runHere(b record.Box, config *configs.Config, control *os.File, mounted <-chan error) (*life, error) {
	var entered error
	if !cgroups.IsCgroup2UnifiedMode() {
		limits := config.Cgroups
		config.Cgroups, config.RootlessCgroups = withoutGroups(b.ID), true
		entered = groups(b.ID).enter(limits, b.Options)
		go warm()
	}
	if err := errors.Join(<-mounted, entered); err != nil {
		return nil, err
	}
	c, err := libcontainer.Create(l.state, b.ID, config)
	if err != nil {
		return nil, fmt.Errorf("prepare the box: %w", err)
	}
	p := &libcontainer.Process{
		Args: []string{"/proc/self/fd/3"}, Cwd: "/", Init: true, Env: []string{initThreads(), homeMark(l.home)},
		ExtraFiles: []*os.File{l.program, control}, // guest.Main expects them as descriptors 3 and 4
		LogLevel:   errorsOnly,
	}
	if err := c.Run(p); err != nil {
		return nil, fmt.Errorf("start the box: %w", err)
	}
	f := &life{reap: func() { _, _ = p.Wait() }}
	if err = f.hold(p); err != nil {
		_ = p.Signal(unix.SIGKILL)
		f.reap()
		return nil, err
	}
	return f, nil
}

// initThreads returns the environment variable that keeps init on a large host
// from having more threads than are set aside for it (initProcesses). A thread
// that Go can't start would end init.
func initThreads() string { return fmt.Sprintf("GOMAXPROCS=%d", min(4, runtime.NumCPU())) }

func (f *life) hold(p *libcontainer.Process) error {
	pid, err := p.Pid()
	if err != nil {
		return err
	}
	if f.init, err = process.Of(pid); err != nil {
		return err
	}
	f.handle, err = process.Open(f.init)
	return err
}

// greet sends init what it needs, confines the thread that starts commands,
// and lets it serve.
func (l launcher) greet(b record.Box, pid int, net *network.Box, control *wire.Conn) error {
	dir, err := openPath(record.Dir(l.home, b.ID))
	if err != nil {
		return err
	}
	defer dir.Close()
	listener, err := sockets.Replace(dir, wire.InitSocket)
	if err != nil {
		return err
	}
	defer unix.Close(listener)
	if err := groups(b.ID).adopt(pid); err != nil {
		return fmt.Errorf("put init into its cgroup: %w", err)
	}
	files, err := groups(b.ID).files(b.UIDBase)
	if err != nil {
		return err
	}
	defer closeAll(files)
	fds := []int{listener}
	for _, f := range files {
		fds = append(fds, int(f.Fd()))
	}
	config, err := guestConfig(b, net)
	if err != nil {
		return err
	}
	if err := control.Send(wire.TypeConfig, config, fds...); err != nil {
		return err
	}
	connected := connect(net, pid, b.UIDBase) // meanwhile init prepares itself
	if err := expect(control, wire.TypeReady, nil); err != nil {
		return err // it says why init ended; connected then failed only because of that
	}
	if connected != nil {
		return connected
	}
	if err := groups(b.ID).split(pid, b.Options); err != nil {
		return fmt.Errorf("put init into its cgroup: %w", err)
	}
	return control.Send(wire.TypeGo, nil)
}

func guestConfig(b record.Box, net *network.Box) (wire.Config, error) {
	c := wire.Config{ImageEnv: b.Image.Env, Env: b.Options.Env, WorkingDir: b.Options.WorkingDir, User: b.Options.User}
	if c.WorkingDir == "" {
		c.WorkingDir = b.Image.WorkingDir
	}
	if c.User == "" {
		c.User = b.Image.User
	}
	var err error
	c.Files, err = etc(b, net)
	return c, err
}

// end kills a box's init, waits until it has ended, and removes the box's kernel
// objects.
func (l launcher) end(id string, f *life) {
	_ = f.handle.Kill()
	_ = f.handle.Wait()
	l.cleanUp(id, f)
}

// cleanUp removes the kernel objects of a box that has ended.
func (l launcher) cleanUp(id string, f *life) {
	f.reap()
	_ = f.handle.Close()
	if err := closeNetwork(f.net); err != nil {
		l.log.Error("take a box's network away", "box", id, "error", err)
	}
	l.clean(id)
}

// clean removes a box's groups and libcontainer's state directory of it. What can't
// be removed now, for want of descriptors, the next sweep removes.
func (l launcher) clean(id string) {
	err := errors.Join(groups(id).remove(), os.RemoveAll(filepath.Join(l.state, id)))
	if err == nil {
		l.unclean.Delete(id)
		return
	}
	l.unclean.Store(id, true)
	l.log.Error("clean up after a box", "box", id, "error", err)
}

// cleanAgain removes what an earlier life of a box has left, if its clean failed
// for want of descriptors: beside that, libcontainer makes no container. Errors:
// ResourceExhausted.
func (l launcher) cleanAgain(id string) error {
	if _, err := os.Lstat(filepath.Join(l.state, id)); err != nil {
		return nil // nothing is left, which is the usual case
	}
	l.clean(id)
	if _, left := l.unclean.Load(id); left {
		return fault.New(fault.ResourceExhausted, "what an earlier run of box %s has left can't be removed: the shim's log says why, and 'sandbox gc' tries again", id)
	}
	return nil
}

// expect receives one frame of type t and decodes it into v, unless v is nil. A
// frame of type TypeError is returned as the error that it reports.
func expect(c *wire.Conn, t wire.Type, v any) error {
	f, err := c.Recv()
	if err != nil {
		return err
	}
	defer f.CloseFDs()
	if f.Type == wire.TypeError {
		var e wire.Error
		_ = f.Decode(&e)
		return errors.New(e.Message)
	}
	if f.Type != t {
		return fmt.Errorf("%w: got frame %d, want %d", wire.ErrProtocol, f.Type, t)
	}
	if v == nil {
		return nil
	}
	return f.Decode(v)
}

func socketPair() (*wire.Conn, *os.File, error) {
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	c := wire.NewConn(p[0], "init")
	return c, os.NewFile(uintptr(p[1]), "shim"), c.SetTimeout(initTimeout)
}

// doubtful are the kinds that a step may have taken a shortage for.
var doubtful = []fault.Kind{fault.Engine, fault.Unsupported, fault.Upstream, fault.ResourceExhausted}

// explain classifies the error with which a box could not be started. On a full
// disk each step fails with an error of its own, and init may even end without
// saying anything. So explain looks for itself whether a disk is full: the
// home's, and the box's, which is mounted at root. before is what the home's had
// run out of when the start began, "" for nothing: since then room may have been
// freed.
func (l launcher) explain(err error, root, before string) error {
	if f := fault.Of(err); fault.Classified(err) && !slices.Contains(doubtful, f.Kind) {
		return err
	}
	if what := cmp.Or(before, exhausted(l.home)); what != "" {
		return fault.Wrap(fault.Storage, err, "the disk of the home %s has no %s left: free some", l.home, what)
	}
	if what := exhausted(root); what != "" {
		return fault.Wrap(fault.Storage, err, "the box's disk has no %s left: free some", what)
	}
	return engineFault(err)
}

// exhausted returns what a file system has run out of, "space" or "inodes", or
// "" if it has enough of both.
func exhausted(path string) string {
	var st unix.Statfs_t
	switch err := unix.Statfs(path, &st); {
	case err != nil:
		return ""
	case st.Bavail*uint64(st.Bsize) < leastSpace:
		return "space"
	case st.Files > 0 && st.Ffree < leastFiles:
		return "inodes"
	}
	return ""
}

// leastSpace (in bytes) and leastFiles are below what a disk counts as full once a
// start has failed. The start needs less: a few directories and files of a few bytes.
// But on a full disk room comes free and goes all the time, in pieces of this size.
const (
	leastSpace = 4 << 20
	leastFiles = 16
)

// engineFault classifies errors of libcontainer and init.
func engineFault(err error) error {
	// What a step takes a shortage for counts as little. Go reports EBADF for a child
	// that may not have a descriptor of so high a number, and netlink's errors have the
	// kernel's as text alone.
	if fault.Short(err) || errors.Is(err, unix.EBADF) || strings.Contains(err.Error(), unix.EMFILE.Error()) {
		return fault.Wrap(fault.ResourceExhausted, err, "make the box: raise the limit of open files (ulimit -n)")
	}
	if fault.Classified(err) {
		return err
	}
	if _, ok := fault.Host(err); ok {
		return fault.Disk(err, "make the box")
	}
	return fault.Wrap(fault.Engine, err, "make the box")
}
