package namespaces

import (
	"bytes"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/rootless"
	"sandbox/core/engine/shim/network"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
)

// uplink connects the network namespace of a home to the host's network with pasta.
type uplink struct {
	spaces  *spaces
	log     *slog.Logger
	closing chan struct{} // closed when pasta is not needed any more

	mu    sync.Mutex
	pool  netip.Prefix
	pasta *exec.Cmd     // nil while it does not run
	ended chan struct{} // closed when pasta has ended
}

// mtu is what pasta hands on best: large packets cost it as much as small ones.
const mtu = 65520

// interfaceName is the name of the interface in the namespace.
const interfaceName = "uplink"

// restartPause is the time before pasta is started again when it has ended.
const restartPause = time.Second

// connect starts pasta unless it runs.
func (u *uplink) connect() (wire.Connected, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.pasta != nil {
		return wire.Connected{Pool: u.pool, MTU: mtu}, nil
	}
	if !u.pool.IsValid() {
		pool, err := network.FreePool()
		if err != nil {
			return wire.Connected{}, fault.Wrap(fault.Upstream, err, "find addresses for boxes")
		}
		u.pool = pool
	}
	if err := u.start(); err != nil {
		return wire.Connected{}, err
	}
	return wire.Connected{Pool: u.pool, MTU: mtu}, nil
}

// start starts pasta and waits until it serves. u.mu is held.
func (u *uplink) start() error {
	path, err := rootless.Pasta()
	if err != nil {
		return err
	}
	own, gateway := network.UplinkAddress(u.pool)
	ready, theirs, err := os.Pipe()
	if err != nil {
		return fault.Wrap(fault.ResourceExhausted, err, "make a pipe")
	}
	defer ready.Close()
	var said bytes.Buffer
	cmd := exec.Command(path, "--foreground", "--quiet", "--stderr", "--pid", "/proc/self/fd/3", "--ipv4-only",
		"--config-net", "--no-map-gw", "--tcp-ports", "none", "--udp-ports", "none", "--tcp-ns", "none", "--udp-ns", "none",
		"--ns-ifname", interfaceName, "--mtu", strconv.Itoa(mtu),
		"--address", own.String(), "--netmask", strconv.Itoa(network.UplinkBits), "--gateway", gateway.String(),
		strconv.Itoa(u.spaces.rest.PID))
	cmd.Stderr, cmd.ExtraFiles = &limited{w: &said, left: 4 << 10}, []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	began, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread() // pasta is killed when the thread that started it ends
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		began <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	err = <-began
	_ = theirs.Close()
	if err != nil {
		return fault.Wrap(fault.Unsupported, err, "start %s", path)
	}
	if err := awaitPasta(ready); err != nil {
		_ = cmd.Process.Kill()
		<-ended
		return fault.New(fault.Unsupported, "pasta, which connects the boxes of a user who is not root, did not start (%v): %s; use network None, or see docs/rootless.md",
			err, strings.TrimSpace(said.String()))
	}
	u.pasta, u.ended = cmd, ended
	go u.supervise(ended)
	return nil
}
