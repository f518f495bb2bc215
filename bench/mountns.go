package main

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// mountNS is a mount namespace to start peers in. nil is the host's.
type mountNS struct{ fd *os.File }

// withoutUnified makes a mount namespace in which a hybrid host looks like one
// of cgroup v1 alone: crun 1.8 refuses hybrid hosts.
func withoutUnified() (*mountNS, error) {
	var ns *mountNS
	err := onThread(func() error {
		if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("unsharing the mount namespace: %w", err)
		}
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return fmt.Errorf("making all mounts private: %w", err)
		}
		if err := unix.Unmount(unified, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmounting %s: %w", unified, err)
		}
		fd, err := os.Open("/proc/thread-self/ns/mnt")
		ns = &mountNS{fd}
		return err
	})
	return ns, err
}

// do runs f where the processes it starts are born in the namespace. The way
// in costs f nothing: f starts its clock itself.
func (n *mountNS) do(f func() error) error {
	if n == nil {
		return f()
	}
	return onThread(func() error {
		if err := unix.Unshare(unix.CLONE_FS); err != nil { // setns refuses shared ones
			return err
		}
		if err := unix.Setns(int(n.fd.Fd()), unix.CLONE_NEWNS); err != nil {
			return err
		}
		return f()
	})
}

func (n *mountNS) close() error {
	if n == nil {
		return nil
	}
	return n.fd.Close()
}

// onThread runs f on a thread of its own, which ends with it.
func onThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: Go ends the thread with the goroutine
		done <- f()
	}()
	return <-done
}
