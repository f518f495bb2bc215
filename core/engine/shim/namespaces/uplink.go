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

// uplink connects the network namespace of a home to the host's network with a program,
// pasta or slirp4netns.
type uplink struct {
	spaces  *spaces
	log     *slog.Logger
	closing chan struct{} // closed when the program is not needed any more

	mu      sync.Mutex
	pool    netip.Prefix
	program *exec.Cmd     // nil while it does not run
	ended   chan struct{} // closed when it has ended
}

// mtu is what these programs hand on best: large packets cost them as much as small ones.
const mtu = 65520

// interfaceName is the name of the interface in the namespace.
const interfaceName = "uplink"

// restartPause is the time before the program is started again when it has ended.
const restartPause = time.Second

// connect starts the program unless it runs.
func (u *uplink) connect() (wire.Connected, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.program != nil {
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

// connectedFD is where the program tells that it serves.
const connectedFD = 3

// arguments returns the arguments of the program: it makes the interface with its address
// and the default route, and leads nothing to the host's own loopback or its resolver.
func (u *uplink) arguments(slirp bool) []string {
	pid, ready, mtu := strconv.Itoa(u.spaces.rest.PID), strconv.Itoa(connectedFD), strconv.Itoa(mtu)
	if slirp {
		return []string{
			"--configure", "--disable-host-loopback", "--disable-dns", "--enable-sandbox", "--enable-seccomp", "--ready-fd", ready,
			"--mtu", mtu, "--cidr", network.UplinkPrefix(u.pool).String(), pid, interfaceName,
		}
	}
	own, gateway := network.UplinkAddress(u.pool)
	return []string{
		"--foreground", "--quiet", "--stderr", "--pid", "/proc/self/fd/" + ready, "--ipv4-only",
		"--config-net", "--no-map-gw", "--tcp-ports", "none", "--udp-ports", "none", "--tcp-ns", "none", "--udp-ns", "none",
		"--ns-ifname", interfaceName, "--mtu", mtu,
		"--address", own.String(), "--netmask", strconv.Itoa(network.UplinkBits), "--gateway", gateway.String(), pid,
	}
}

// start starts the program and waits until it serves. u.mu is held.
func (u *uplink) start() error {
	connector, err := rootless.FindConnector()
	if err != nil {
		return err
	}
	ready, theirs, err := os.Pipe()
	if err != nil {
		return fault.Wrap(fault.ResourceExhausted, err, "make a pipe")
	}
	defer ready.Close()
	var said bytes.Buffer
	cmd := exec.Command(connector.Path, u.arguments(connector.Slirp)...)
	cmd.Stderr, cmd.ExtraFiles = &limited{w: &said, left: 4 << 10}, []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	began, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread() // the program is killed when the thread that started it ends
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
		return fault.Wrap(fault.Unsupported, err, "start %s", connector.Path)
	}
	if err := awaitServing(ready); err != nil {
		_ = cmd.Process.Kill()
		<-ended
		return fault.New(fault.Unsupported, "%s, which connects the boxes of a user who is not root, did not start (%v): %s; use network None, or see docs/rootless.md",
			connector.Path, err, strings.TrimSpace(said.String()))
	}
	u.program, u.ended = cmd, ended
	go u.supervise(ended)
	return nil
}
