package harness

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Place holds namespaces, other than this process's, in which something is to
// be run.
type Place []*os.File

// WithoutUnified makes a mount namespace in which a hybrid host looks like one
// with cgroup v1 only, because crun 1.8 refuses hybrid hosts. The directories
// in hidden are empty there, and files that are written into them are lost with
// the namespace.
func WithoutUnified(hidden ...string) (Place, error) {
	return newPlace(unix.CLONE_FS|unix.CLONE_NEWNS, "mnt", func() error {
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return fmt.Errorf("making all mounts private: %w", err)
		}
		if Hybrid() {
			if err := unix.Unmount(unified, unix.MNT_DETACH); err != nil {
				return fmt.Errorf("unmounting %s: %w", unified, err)
			}
		}
		for _, dir := range hidden {
			if err := unix.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
				return fmt.Errorf("covering %s: %w", dir, err)
			}
		}
		return nil
	})
}

// NewNetwork makes a network namespace.
func NewNetwork() (Place, error) {
	return newPlace(unix.CLONE_NEWNET, "net", func() error { return nil })
}

func newPlace(flags int, name string, prepare func() error) (p Place, err error) {
	err = onThread(func() error {
		if err := unix.Unshare(flags); err != nil {
			return fmt.Errorf("making a %s namespace: %w", name, err)
		}
		if err := prepare(); err != nil {
			return err
		}
		fd, err := os.Open("/proc/thread-self/ns/" + name)
		p = Place{fd}
		return err
	})
	return p, err
}

// Do runs f so that the processes that it starts are in the place. Entering the
// place is not in f's time, because f starts its clock itself.
func (p Place) Do(f func() error) error {
	if len(p) == 0 {
		return f()
	}
	return onThread(func() error {
		if err := unix.Unshare(unix.CLONE_FS); err != nil { // setns refuses shared ones
			return err
		}
		for _, ns := range p {
			if err := unix.Setns(int(ns.Fd()), 0); err != nil {
				return err
			}
		}
		return f()
	})
}

// Close closes the namespaces. Those in which nothing runs end.
func (p Place) Close() (err error) {
	for _, ns := range p {
		err = ns.Close()
	}
	return err
}

// onThread runs f on a thread of its own. The thread ends when f returns.
func onThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: Go ends the thread with the goroutine
		done <- f()
	}()
	return <-done
}
