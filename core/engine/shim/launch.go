package shim

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runc/libcontainer/configs"
	"golang.org/x/sys/unix"

	"sandbox/core/engine/process"
	"sandbox/core/engine/record"
	"sandbox/core/engine/shim/network"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/options"
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
	cpus    *cpuUse
	unclean *sync.Map // by slot, the boxes of which something could not be removed
	log     *slog.Logger
}

// life is the part of a box that exists only while the box runs.
type life struct {
	slot    string // see record.Box.Slot
	init    process.Identity
	handle  *process.Handle
	reap    func()            // collects init once it has ended
	net     *network.Box      // nil for network None
	etc     map[string]string // the files that it was told to write into /etc, by name
	control *wire.Conn        // leads to init until the life is settled, then nil
	served  chan struct{}     // closed once the main command is not followed any more; nil for none; guarded by box.mu
}

// launch starts a box. On failure nothing of it is left in the kernel.
func (l launcher) launch(b record.Box) (*life, error) {
	if err := l.cleanAgain(b.ID); err != nil {
		return nil, err
	}
	full := exhausted(l.home)
	net, err := l.reservePorts(b.Options)
	if err != nil {
		return nil, engineFault(err)
	}
	tree := stagedTree(b.ID)
	defer tree.close()
	f, err := l.prepare(b, &tree, net, l.configure)
	if err == nil {
		err = l.hear(f)
	}
	if err != nil {
		return nil, l.explain(err, tree.view(), full)
	}
	return f, nil
}

// spare makes a life that is not settled yet. On failure nothing of it is left in
// the kernel.
func (l launcher) spare(b record.Box) (*life, error) {
	net, err := l.reservePorts(b.Options)
	if err != nil {
		return nil, err
	}
	tree := stagedTree(b.ID)
	defer tree.close()
	return l.prepare(b, &tree, net, func(*life, record.Box) error { return nil })
}

// prepare makes everything of a box up to an init that waits to hear which box it
// is in. tell may tell it that at once, so that it need not wait. b.ID becomes the
// slot. On failure nothing is left in the kernel, and net is closed.
func (l launcher) prepare(b record.Box, tree *tree, net *network.Box, tell func(*life, record.Box) error) (f *life, err error) {
	mounted := make(chan error, 1)
	go func() { mounted <- l.mount(tree, b) }() // while the cgroups are made
	control, child, err := socketPair()
	if err != nil {
		<-mounted //nolint:errcheck // its failure would say less
		return nil, errors.Join(fault.Wrap(fault.ResourceExhausted, err, "make a socket"), closeNetwork(net))
	}
	defer child.Close()
	if f, err = l.run(b, tree.root, child, mounted); err != nil {
		return nil, errors.Join(err, control.Close(), closeNetwork(net))
	}
	_ = child.Close() // only init has this end now, so its death reads as EOF
	tree.unmountMeanwhile()
	f.slot, f.control, f.net = b.ID, control, net
	if err := l.equip(f, b, tell); err != nil {
		l.end(f)
		return nil, fmt.Errorf("start the box's init: %w", err)
	}
	return f, nil
}

// mount makes the box's root file system, with everything that is mounted in it
// from outside the box: /dev and the volumes.
func (l launcher) mount(t *tree, b record.Box) error {
	ids := newIDMaps(b.UIDBase)
	defer ids.close()
	if err := l.mountRoot(t, b, ids); err != nil {
		return err
	}
	if err := mountDev(t.root, b.UIDBase, b.Options.MemoryMiB); err != nil {
		return err
	}
	return mountVolumes(l.home, t.root, b.Options.Volumes, b.UIDBase)
}

// mountRoot makes the box's root file system, with nothing mounted in it.
func (l launcher) mountRoot(t *tree, b record.Box, ids *idMaps) error {
	layers := b.Layers()
	ids.host = b.Options.RootfsPath != ""
	if b.Options.RootfsWithin != "" { // opened again: its symbolic links may lead elsewhere by now
		root, err := openRootfs(b.Options)
		if err != nil {
			return err
		}
		defer root.Close()
		layers = []string{fdPath(root)}
	}
	if err := t.mount(record.Dir(l.home, b.ID), layers, ids, b.Options.DiskSizeGB, b.Options.AutoRemove); err != nil {
		return fault.Disk(err, "make the box's root file system")
	}
	return checkMountPoints(t.root)
}

// run makes the box's namespaces, mounts and groups, and starts its init once
// its root file system is mounted. It works on a thread of its own, which ends
// afterwards; groups.enter says why.
func (l launcher) run(b record.Box, root string, control *os.File, mounted <-chan error) (f *life, err error) {
	c, err := config(b, root, l.cpus.pick(b.Options.CPUs))
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
	if !unifiedMode() {
		limits := config.Cgroups
		config.Cgroups, config.RootlessCgroups = withoutGroups(b.ID), true
		entered = groups(b.ID).enter(limits.Resources, b.Options)
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
		Args: []string{"/proc/self/fd/3"}, Cwd: "/", Init: true, Env: []string{oneCPU, homeMark(l.home)},
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

// oneCPU keeps init's Go from using more than one CPU at a time. Each further one
// costs a box 130 KiB of memory, and init has no use for it: commands are started by
// one thread. It also keeps init on a large host from having more threads than are set
// aside for it (initProcesses). A thread that Go can't start would end init.
const oneCPU = "GOMAXPROCS=1"

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

// equip hands a new init its descriptors and what tell tells it, connects it to its
// network, and waits until it is prepared and has confined the thread that starts
// commands.
func (l launcher) equip(f *life, b record.Box, tell func(*life, record.Box) error) error {
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
	if err := groups(f.slot).adopt(f.init.PID); err != nil {
		return fmt.Errorf("put init into its cgroup: %w", err)
	}
	files, err := groups(f.slot).files(b.UIDBase)
	if err != nil {
		return err
	}
	defer closeAll(files)
	fds := []int{listener}
	for _, file := range files {
		fds = append(fds, int(file.Fd()))
	}
	if err := f.control.Send(wire.TypePrepare, nil, fds...); err != nil {
		return err
	}
	if err := tell(f, b); err != nil {
		return err
	}
	connected := connect(f.net, f.init.PID, b.UIDBase) // meanwhile init prepares itself
	if err := awaitReady(f.control); err != nil {
		return err // it says why init ended; connected then failed only because of that
	}
	if connected != nil {
		return connected
	}
	if err := groups(f.slot).split(f.init.PID, b.Options); err != nil {
		return fmt.Errorf("put init into its cgroup: %w", err)
	}
	return nil
}

// configure sends init the settings of its box, which it takes up once it is
// prepared.
func (l launcher) configure(f *life, b record.Box) error {
	config, err := guestConfig(b, f.net)
	if err != nil {
		return err
	}
	f.etc = config.Files
	return f.control.Send(wire.TypeConfig, config)
}

// tell makes a prepared life that of box b. On failure the life is ended.
func (l launcher) tell(f *life, b record.Box) error { return l.told(f, l.configure(f, b)) }

// hear waits until an init that was told its settings serves, if that was not heard
// before. On failure the life is ended.
func (l launcher) hear(f *life) error {
	if f.control == nil {
		return nil
	}
	err := awaitReady(f.control)
	_ = f.control.Close()
	f.control = nil
	return l.told(f, err)
}

// told ends a life whose init could not be told its settings because of err.
func (l launcher) told(f *life, err error) error {
	if err == nil {
		return nil
	}
	l.end(f)
	return fmt.Errorf("start the box's init: %w", err)
}

func guestConfig(b record.Box, net *network.Box) (wire.Config, error) {
	c := wire.Config{Hostname: hostname(b), ImageEnv: b.Image.Env, Env: b.Options.Env, WorkingDir: b.Options.WorkingDir, User: b.Options.User, Strict: b.Options.Seccomp == options.SeccompStrict, Watched: unenforced(b.Options)}
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
func (l launcher) end(f *life) {
	_ = f.handle.Kill()
	_ = f.handle.Wait()
	l.cleanUp(f)
}

// cleanUp removes the kernel objects of a box that has ended.
func (l launcher) cleanUp(f *life) {
	f.reap()
	_ = f.handle.Close()
	if f.control != nil {
		_ = f.control.Close()
	}
	if err := closeNetwork(f.net); err != nil {
		l.log.Error("take a box's network away", "slot", f.slot, "error", err)
	}
	l.clean(f.slot)
}

// clean removes the groups of a slot and libcontainer's state directory of it. What
// can't be removed now, for want of descriptors, the next sweep removes.
func (l launcher) clean(slot string) {
	l.cpus.forget(slot)
	err := errors.Join(groups(slot).remove(), os.RemoveAll(filepath.Join(l.state, slot)))
	if err == nil {
		l.unclean.Delete(slot)
		return
	}
	l.unclean.Store(slot, true)
	l.log.Error("clean up after a box", "slot", slot, "error", err)
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

// awaitReady waits until init answers that it has done what it was told. A frame of
// type TypeError is returned as the error that it reports.
func awaitReady(c *wire.Conn) error {
	f, err := c.Recv()
	if err != nil {
		return err
	}
	defer f.CloseFDs()
	switch f.Type {
	case wire.TypeReady:
		return nil
	case wire.TypeError:
		var e wire.Error
		_ = f.Decode(&e)
		return errors.New(e.Message)
	}
	return fmt.Errorf("%w: got frame %d, want %d", wire.ErrProtocol, f.Type, wire.TypeReady)
}

func socketPair() (*wire.Conn, *os.File, error) {
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	c := wire.NewConn(p[0], "init")
	return c, os.NewFile(uintptr(p[1]), "shim"), c.SetTimeout(initTimeout)
}
