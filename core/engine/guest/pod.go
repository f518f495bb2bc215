package guest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/wire"
)

// Pod is the box in a pod's container, of which the calling process is process 1. The
// kubelet has done there what the shim does for a box of this host: mounts, network,
// limits, host name.
type Pod struct {
	g       *guest
	stopped chan string // why

	mu    sync.Mutex
	conns map[*wire.Conn]bool // that init serves
	over  bool
	left  func() // called when no connection is left, if the box is over
}

// pod is what init knows of its pod.
type pod struct {
	env     []string // the image's
	dir     string   // the image's working directory
	claimed *wire.Config

	disk     *Disk         // nil for none
	restored chan struct{} // closed when the disk is as the box had it, or damaged says why not
	damaged  error
}

// Private begins the names of the environment that is for process 1 alone.
const Private = "SANDBOX_POD_"

// NewPod prepares the box, before anything of it runs. grace is how long after a signal
// from outside the kubelet kills what is left, but for the time that a save of the disk
// takes. disk is nil for a box whose disk goes with its pod.
func NewPod(grace time.Duration, disk *Disk) (*Pod, error) {
	if os.Getpid() != 1 {
		return nil, errors.New("the init of a pod must be process 1 of its container: the pod must not share its processes")
	}
	signals, err := hear()
	if err != nil {
		return nil, err
	}
	children, err := harden(heardPC)
	if err != nil {
		return nil, err
	}
	p := &Pod{stopped: make(chan string, 2), conns: map[*wire.Conn]bool{}}
	p.g = &guest{execs: map[string]*exec{}, children: map[int]*exec{}, quit: func() { p.stopped <- wire.EndedOnRequest }}
	if err := p.g.preparePod(); err != nil {
		return nil, err
	}
	p.g.pod.disk, p.g.pod.restored = disk, make(chan struct{})
	go p.restore()
	go p.g.reap(children)
	go p.heed(signals, grace)
	return p, nil
}

func (g *guest) preparePod() (err error) {
	g.pod = &pod{env: imageEnv(os.Environ())}
	if g.pod.dir, err = os.Getwd(); err != nil {
		return fmt.Errorf("find the image's working directory: %w", err)
	}
	if g.tree, err = newMarks(); err != nil {
		return err
	}
	g.oom.File = ownKills()
	if err := g.openDevices(); err != nil {
		return err
	}
	g.use.last = time.Now()
	g.spawner, err = startSpawner(nil)
	return err
}

// imageEnv returns what is the image's own in the environment of a pod's process 1.
// Kubernetes adds the addresses of services, and the runtime the host name.
func imageEnv(env []string) (own []string) {
	for _, pair := range env {
		added := strings.HasPrefix(pair, Private) || strings.HasPrefix(pair, "KUBERNETES_") || strings.HasPrefix(pair, "HOSTNAME=")
		if !added {
			own = append(own, pair)
		}
	}
	return own
}

// Connect returns a new connection to init, in non-blocking mode.
func (p *Pod) Connect() (*wire.Conn, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("connect to init: %w", err)
	}
	go p.serve(wire.NewConn(pair[0], "peer"))
	return wire.NewConn(pair[1], "init"), nil
}

// serve serves one connection of init's.
func (p *Pod) serve(conn *wire.Conn) {
	p.mu.Lock()
	p.conns[conn] = true
	if p.over {
		conn.CloseWrite()
	}
	p.mu.Unlock()
	p.g.handle(conn)
	p.mu.Lock()
	defer p.mu.Unlock()
	if delete(p.conns, conn); p.over && len(p.conns) == 0 {
		p.left()
	}
}

// Wait waits until the box has been stopped, and returns why. No process but init is left
// then, and the other sides of all connections have closed them, having got the ends of the
// execs, or the time for that is over. It may be called once.
func (p *Pod) Wait() (why string) {
	why = <-p.stopped
	told, left := context.WithTimeout(context.Background(), farewell)
	p.mu.Lock()
	p.over, p.left = true, left
	for conn := range p.conns {
		conn.CloseWrite()
	}
	if len(p.conns) == 0 {
		left()
	}
	p.mu.Unlock()
	<-told.Done()
	return why
}

// farewell bounds how long the other sides may take to get the ends of execs, once nothing
// runs any more. The kubelet's own end must not come before that.
const farewell = 1 * time.Second

// heed stops the box when a signal comes from outside: that is the kubelet's wish,
// whichever signal the image names for it.
func (p *Pod) heed(signals *os.File, grace time.Duration) {
	if err := await(signals); err != nil {
		return
	}
	grace = max(grace-farewell, grace/2)
	first, err := p.g.finish(grace)
	if !first && err != nil { // a request to stop has failed, and the box went on: the kubelet won't ask again
		first, err = p.g.finish(grace)
	}
	switch {
	case err != nil:
		p.stopped <- wire.EndedUnsaved + err.Error()
	case first && p.g.keeps():
		p.stopped <- wire.EndedSaved
	case first:
		p.stopped <- wire.EndedOutside
	}
}

// waits reports whether nobody has said yet which box this is.
func (p *pod) waits() bool { return p != nil && p.claimed == nil }

var (
	errUnclaimed = errors.New("the box has no settings yet")
	errClaimed   = errors.New("the box has other settings already")
)

// handleConfig gives a pod the settings of its box, once. The host name and the files in
// /etc are the kubelet's.
func (g *guest) handleConfig(conn *wire.Conn, f wire.Frame) error {
	var c wire.Config
	if err := f.Decode(&c); err != nil {
		return err
	}
	if g.pod == nil {
		return wire.ErrProtocol
	}
	if err := g.pod.awaitDisk(); err != nil {
		return err
	}
	if err := g.claim(c); err != nil {
		return err
	}
	return conn.Send(wire.TypeReady, nil)
}

func (g *guest) claim(c wire.Config) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pod.claimed != nil {
		if !reflect.DeepEqual(*g.pod.claimed, c) {
			return errClaimed
		}
		return nil
	}
	g.config = c
	g.config.ImageEnv = g.pod.env
	g.config.WorkingDir = first(c.WorkingDir, g.pod.dir)
	var err error
	g.spawner.do(func() { err = g.fence() })
	if err == nil {
		g.pod.claimed, g.use.last = &c, time.Now()
	}
	return err
}
