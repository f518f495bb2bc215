package shim

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core/engine/process"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
)

// answerSockets makes sockets for a client that connects to a port of a box: TCP sockets in
// the network namespace of the box that are connected to nothing yet, one of IPv4, and one
// of IPv6 where the kernel has that.
func (k *keeper) answerSockets(f wire.Frame) (descriptors, error) {
	var r wire.BoxRequest
	if err := f.Decode(&r); err != nil {
		return nil, err
	}
	init, err := k.init(r.ID)
	if err != nil {
		return nil, err
	}
	made, err := socketsOf(init)
	if errors.Is(err, os.ErrClosed) || errors.Is(err, unix.ESRCH) {
		return nil, fault.New(fault.InvalidState, "box %s has ended", r.ID)
	}
	return made, err
}

// init returns a handle of the init of a box that runs, which is the box's. Errors:
// BoxNotFound, InvalidState.
func (k *keeper) init(id string) (*process.Handle, error) {
	b := k.find(id)
	if b == nil {
		return nil, fault.New(fault.BoxNotFound, "no box %q", id)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.life == nil || b.rec.Status != api.Running {
		return nil, b.rec.NotRunning()
	}
	return b.life.handle, nil
}

// socketsOf makes the sockets on a thread that joins the namespace for that, and ends
// with it.
func socketsOf(init *process.Handle) (made descriptors, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked, which ends the thread
		if err = init.JoinNetwork(); err == nil {
			made, err = newSockets()
		}
	}()
	<-done
	return made, err
}

// newSockets makes sockets in the network namespace of the calling thread.
func newSockets() (descriptors, error) {
	var made descriptors
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
		if family == unix.AF_INET6 && errors.Is(err, unix.EAFNOSUPPORT) {
			break
		}
		if err != nil {
			made.close()
			return nil, fmt.Errorf("make a socket in the network of a box: %w", err)
		}
		made = append(made, fd)
	}
	return made, nil
}
