package guest

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// capabilities are those of commands that run as the box's root. They count only
// within the box's user namespace, and suffice to install packages and to serve
// on port 80. None of them allows a command to mount, to trace init, to load
// kernel modules, or to make devices or namespaces.
const capabilities = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER |
	1<<unix.CAP_FSETID | 1<<unix.CAP_KILL | 1<<unix.CAP_SETGID | 1<<unix.CAP_SETUID |
	1<<unix.CAP_SETPCAP | 1<<unix.CAP_SETFCAP | 1<<unix.CAP_NET_BIND_SERVICE |
	1<<unix.CAP_NET_RAW | 1<<unix.CAP_SYS_CHROOT

// spawner owns the one thread that starts commands. This thread has given up
// every right that commands must not have: commands inherit that, while the
// other threads of init keep their rights. Under cgroup v1, where limits are set
// per thread, the thread is also in the groups that limit the commands.
type spawner struct {
	work chan func()
}

// startSpawner starts the thread and puts it into the cgroup v1 groups whose
// lists of tasks it gets as descriptors. It closes these descriptors.
func startSpawner(tasks []int) (*spawner, error) {
	s := &spawner{work: make(chan func())}
	ready := make(chan error)
	go s.run(tasks, ready)
	return s, <-ready
}

func (s *spawner) run(tasks []int, ready chan<- error) {
	runtime.LockOSThread() // never unlocked: nothing else may run on this thread
	err := join(tasks)
	if err == nil {
		err = confine()
	}
	ready <- err
	for do := range s.work {
		do()
	}
}

// do runs f on the spawner's thread and waits for it.
func (s *spawner) do(f func()) {
	done := make(chan struct{})
	s.work <- func() { f(); close(done) }
	<-done
}

// join puts the calling thread into cgroup v1 groups. The "0" that it writes
// stands for the thread that writes it.
func join(tasks []int) error {
	for _, fd := range tasks {
		_, err := unix.Write(fd, []byte("0"))
		_ = unix.Close(fd)
		if err != nil {
			return fmt.Errorf("join the commands' groups: %w", err)
		}
	}
	return nil
}

// bounds reports whether a capability is in the bounding set.
func bounds(c uintptr) bool {
	in, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0)
	return err != nil || in != 0
}

// confine takes from the calling thread every right that commands must not have.
func confine() error {
	// Dropping from the bounding set needs CAP_SETPCAP, which the thread keeps. A pod
	// may be without it, if its bounding set is small already.
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if capabilities&(1<<c) != 0 {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && err != unix.EINVAL && bounds(c) {
			return fmt.Errorf("drop capability %d from the bounding set: %w", c, err)
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return fmt.Errorf("read capabilities: %w", err)
	}
	for i, kept := range [2]uint32{capabilities & 0xffffffff, uint32(uint64(capabilities) >> 32)} {
		kept &= data[i].Permitted // a pod may have fewer
		data[i] = unix.CapUserData{Effective: kept, Permitted: kept}
	}
	if err := unix.Capset(&header, &data[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	return filter.Load()
}
